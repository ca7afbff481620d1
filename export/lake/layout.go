package lake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/scrapestat/scrapestat/internal/atomicfile"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
)

// Format is the version of the layout.
const Format = 1

const (
	formatFile = "_scrapestat.json"
	runFile    = "run.parquet"
	maxRunFile = 64 << 20 // bytes of it that are read
)

// The columns of table samples: a row per sample of a series. Gains count from the first sample of the recording, or
// from zero where a series is born in it.
const (
	colSeries = iota
	colTime
	colValue
	colGain
	colCount
	colSum
	colBuckets
	colBucketsF
	colReset
)

func sampleColumns() []parquetwriter.Column {
	whole, double := parquetwriter.Whole, parquetwriter.Double
	return []parquetwriter.Column{
		whole("series_id"),
		whole("t"),                              // nanoseconds since 1970
		double("value"),                         // as exposed, of what is not a histogram or summary
		double("gain"),                          // of a counter
		whole("count"),                          // gain of histograms and summaries
		double("sum"),                           // the same
		parquetwriter.List(whole("buckets")),    // gains, cumulative, in the order of the bounds
		parquetwriter.List(double("buckets_f")), // those that are no whole numbers, and of native ones, not cumulative
		parquetwriter.Flag("raw_reset"),         // the server began to count anew
	}
}

// The columns of table series.
const (
	serID = iota
	serGeneration
	serTarget
	serMetric
	serType
	serUnit
	serURL
	serName
	serLabelKey
	serLabelValue
	serBounds
	serAbove
	serLEText
	serOrigin
	serFirst
	serLast
	serBorn
	serStatus
)

func seriesColumns() []parquetwriter.Column {
	text, whole, double := parquetwriter.Text, parquetwriter.Whole, parquetwriter.Double
	columns := []parquetwriter.Column{whole("series_id"), whole("generation"), whole("target"), text("metric_name"),
		text("metric_type"), text("unit"), text("endpoint_url"), text("endpoint_name")}
	columns = append(columns, parquetwriter.Map("labels")...)
	columns = append(columns, parquetwriter.List(double("bounds")), parquetwriter.List(double("above")),
		parquetwriter.List(text("le_text")), double("origin"), whole("first_ns"), whole("last_ns"),
		parquetwriter.Flag("born"), text("status"))
	columns[serMetric].Bounds = true
	return columns
}

// Run is the row of table runs: what was added, and its files. Times are nanoseconds since 1970.
type Run struct {
	Name     string    `parquet:"name"`
	Content  string    `parquet:"content"`
	Format   int32     `parquet:"format"`
	RunIDs   []string  `parquet:"run_ids,list"`
	Version  string    `parquet:"version"` // of the tool that recorded
	Tags     []Tag     `parquet:"tags,list"`
	Command  []string  `parquet:"command,list"`
	Host     string    `parquet:"host"`
	Shards   string    `parquet:"shards"` // "3 of 3", "" of a run without
	Closed   bool      `parquet:"closed"` // false: it was still recorded, or killed
	OriginNS int64     `parquet:"origin_ns"`
	FromNS   int64     `parquet:"window_from"` // the window of its statistics
	ToNS     int64     `parquet:"window_to"`
	Rule     string    `parquet:"window_rule"`
	Phases   []Phase   `parquet:"phases,list"`
	Targets  []Target  `parquet:"targets,list"`
	Warnings []Warning `parquet:"warnings,list"`
	Rows     int64     `parquet:"rows"`
	Files    []File    `parquet:"files,list"`
}

// Tag is one of the user's tags of a run.
type Tag struct {
	Key   string `parquet:"key"`
	Value string `parquet:"value"`
}

// Phase is a named stretch of a run; phases of one name are numbered from 1.
type Phase struct {
	Name     string `parquet:"name"`
	Instance int32  `parquet:"instance"`
	StartNS  int64  `parquet:"start_ns"`
	EndNS    int64  `parquet:"end_ns"`
}

// Target is a server of a run, with the window of its statistics and what was lost.
type Target struct {
	Target    int32   `parquet:"target"`
	URL       string  `parquet:"url"`
	Name      string  `parquet:"name"`
	FromNS    int64   `parquet:"window_from"`
	ToNS      int64   `parquet:"window_to"`
	Seconds   float64 `parquet:"seconds"` // that rates divide by
	Scheduled int64   `parquet:"scheduled"`
	Stored    int64   `parquet:"stored"`
	Lines     int64   `parquet:"lines"`
	Dropped   int64   `parquet:"dropped_lines"`
	Gaps      int64   `parquet:"gaps"`
	Status    string  `parquet:"status"`
}

// Warning is a warning about a run.
type Warning struct {
	Code string `parquet:"code"`
	Text string `parquet:"text"`
}

// File is a file of a run, its path relative to the lake with slashes.
type File struct {
	Path   string `parquet:"path"`
	Rows   int64  `parquet:"rows"`
	Bytes  int64  `parquet:"bytes"`
	SHA256 string `parquet:"sha256"`
}

// safeName is what a run may be called: it becomes a part of paths, which engines read.
var safeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// CheckName refuses a name that cannot be that of a run.
func CheckName(name string) error {
	if !safeName.MatchString(name) {
		return fmt.Errorf("%q cannot be the name of a run in a lake: up to 100 of A-Z a-z 0-9 . _ - (--name)", name)
	}
	return nil
}

// format is the content of _scrapestat.json.
type format struct {
	Format int    `json:"format"`
	Kind   string `json:"kind"`
}

// Open checks that dir is a lake of this format.
func Open(dir string) error {
	var f format
	b, err := os.ReadFile(filepath.Join(dir, formatFile))
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is no lake: it has no %s (lake add makes one): %w", dir, formatFile, fs.ErrNotExist)
	case err != nil:
		return fmt.Errorf("read lake %s: %w", dir, err)
	case f.Format != Format || f.Kind != "scrapestat lake":
		return fmt.Errorf("lake %s has format %d, and this program writes and verifies %d", dir, f.Format, Format)
	}
	return nil
}

// create makes dir a lake if it is none.
func create(dir string) error {
	if err := Open(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create lake: %w", err)
	}
	b, err := json.Marshal(format{Format, "scrapestat lake"})
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, formatFile), append(b, '\n'), atomicfile.DefaultPerm)
}

// runPath is the path of a run's row.
func runPath(dir, name string) string { return filepath.Join(dir, "runs", "run="+name, runFile) }

// ReadRun reads the row of a run; fs.ErrNotExist without one.
func ReadRun(dir, name string) (*Run, error) {
	rows, err := parquetwriter.ReadRows[Run](runPath(dir, name), maxRunFile)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("read %s: %d rows", runPath(dir, name), len(rows))
	}
	return &rows[0], nil
}

// Names returns the names of the runs that are there, ascending.
func Names(dir string) (names []string, err error) {
	if err := Open(dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(dir, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list lake: %w", err)
	}
	for _, e := range entries {
		if name, ok := cutRun(e.Name()); ok && e.IsDir() {
			if _, err := os.Stat(runPath(dir, name)); err == nil {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

func cutRun(folder string) (name string, ok bool) {
	const prefix = "run="
	if len(folder) <= len(prefix) || folder[:len(prefix)] != prefix {
		return "", false
	}
	return folder[len(prefix):], safeName.MatchString(folder[len(prefix):])
}
