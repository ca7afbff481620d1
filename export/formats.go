package export

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/query"
	"github.com/scrapestat/scrapestat/summary"
)

// Format is a kind of file that [Write] writes. One name on the command line may
// stand for several kinds, of which those are written that apply.
type Format struct {
	Name         string // json, csv, ...
	File         string // name of the file
	NeedsSamples bool   // it reads the recordings again, not the result alone
	Write        WriteFunc

	applies func(*summary.Run, Options) bool // nil for always
}

// WriteFunc writes a result, and what it needs of the recordings the result is of.
type WriteFunc func(ctx context.Context, w io.Writer, r *summary.Run, recs []Recording, o Options) error

// registry has all formats there are: a new one is a file of its own and a line here.
var registry = []Format{
	{Name: "json", File: "server_metrics_export.json", Write: fromResult(JSON)},
	{Name: "csv", File: "server_metrics_export.csv", Write: fromResult(CSV)},
	{Name: "jsonl", File: "server_metrics_export.jsonl", NeedsSamples: true, Write: JSONL},
	{Name: "parquet", File: "server_metrics_export.parquet", NeedsSamples: true, Write: Parquet, applies: isAIPerfLayout},
	{Name: "parquet", File: "server_metrics_tidy.parquet", NeedsSamples: true, Write: TidyParquet, applies: isTidyLayout},
	{Name: "parquet", File: "derived.parquet", Write: fromResult(DerivedParquet), applies: hasDerivedRows},
	{Name: "stats", File: "stats.parquet", Write: Stats},
	{Name: "pytorch", File: "scrapestat.pytorch.json", Write: fromResult(PyTorch)},
	{Name: "llm-d", File: "benchmark_report_v0.2.1.json", Write: fromResult(LLMD)},
}

// rowFormat is a form of the rows of package query.
type rowFormat struct {
	name  string
	write func(ctx context.Context, w io.Writer, rows Rows) error
}

var rowFormats = []rowFormat{
	{"csv", func(_ context.Context, w io.Writer, r Rows) error { return query.WriteCSV(w, r.Seq, r.Raw) }},
	{"json", func(_ context.Context, w io.Writer, r Rows) error { return query.WriteJSON(w, r.Seq, r.More) }},
	{"jsonl", func(_ context.Context, w io.Writer, r Rows) error { return query.WriteJSONL(w, r.Seq) }},
	{"parquet", statsParquet},
}

// Rows are rows of package query that are to be written.
type Rows struct {
	Seq  iter.Seq[*query.Row]
	Runs []*summary.Run // that they are of, at least one
	More func() bool    // reports, when all are written, whether there are others
	Raw  bool           // Options.CSVRaw
}

// RowFormats returns the names of the formats that [WriteRows] knows.
func RowFormats() (names []string) {
	for _, f := range rowFormats {
		names = append(names, f.name)
	}
	return names
}

// WriteRows writes rows in one of [RowFormats]. Parquet holds up to 131,072 of them, JSON all.
func WriteRows(ctx context.Context, w io.Writer, format string, rows Rows) error {
	i := slices.IndexFunc(rowFormats, func(f rowFormat) bool { return f.name == format })
	if i < 0 {
		return fmt.Errorf("write rows: unknown format %q", format)
	}
	return rowFormats[i].write(ctx, w, rows)
}

// fromResult adapts a format that does not read recordings.
func fromResult(write func(io.Writer, *summary.Run, Options) error) WriteFunc {
	return func(_ context.Context, w io.Writer, r *summary.Run, _ []Recording, o Options) error {
		return write(w, r, o)
	}
}

func isAIPerfLayout(_ *summary.Run, o Options) bool { return o.ParquetLayout != LayoutTidy }
func isTidyLayout(_ *summary.Run, o Options) bool   { return o.ParquetLayout == LayoutTidy }
func hasDerivedRows(r *summary.Run, _ Options) bool {
	return len(r.Derived)+len(r.Latencies)+len(r.Aggregates) > 0
}

// Formats returns the names of the formats that [Write] knows.
func Formats() []string {
	var names []string
	for _, f := range registry {
		names = append(names, f.Name)
	}
	return slices.Compact(names)
}

// Files returns the names of all files that [Write] may write.
func Files() []string {
	var names []string
	for _, f := range registry {
		names = append(names, f.File)
	}
	return names
}

// Lookup returns the kinds of file that a format stands for with this result; none for a name that is not known.
func Lookup(name string, r *summary.Run, o Options) []Format {
	var found []Format
	for _, f := range registry {
		if f.Name == name && (f.applies == nil || f.applies(r, o)) {
			found = append(found, f)
		}
	}
	return found
}

// The versions of AIPerf's JSON schema that [JSON] writes.
const (
	Schema10 = "1.0"
	Schema11 = "1.1"
)

// The layouts of the Parquet file.
const (
	LayoutAIPerf = "aiperf"
	LayoutTidy   = "tidy"
)

// Options says how files are written. The zero value is AIPerf's current form.
type Options struct {
	Run           string // what the run is called in tables of several; "" is its id
	AIPerfSchema  string // of the JSON: Schema11, also when "", or Schema10
	ParquetLayout string // LayoutAIPerf, also when "", or LayoutTidy
	// CSVRaw writes every cell of the CSV as it is. Else a text that a spreadsheet
	// would compute, one that begins with = @ TAB CR, or with + or - and is no number, gets a ' in front, and so does one
	// that begins with a ', so that taking one ' off the front of each such cell gives the text back.
	CSVRaw bool
	// Unhashed leaves the SHA-256 of files out, when nothing keeps it: for JSONL it costs as much as the rest.
	Unhashed bool
	// Family reports whether samples of a family are wanted in the tidy layout; nil takes all.
	Family func(name string) bool
	Into   *Report // that llm-d is to be put into; nil writes one of its own. It is changed
	// Location is the time zone of AIPerf's zoneless local times; nil is that of this machine.
	Location *time.Location
}

func (o Options) validate() error {
	switch o.AIPerfSchema {
	case "", Schema10, Schema11:
	default:
		return fmt.Errorf("AIPerf schema %q: known are %s and %s", o.AIPerfSchema, Schema10, Schema11)
	}
	switch o.ParquetLayout {
	case "", LayoutAIPerf, LayoutTidy:
	default:
		return fmt.Errorf("Parquet layout %q: known are %s and %s", o.ParquetLayout, LayoutAIPerf, LayoutTidy)
	}
	return nil
}

// Recording is what the formats that hold samples read of a recorded run;
// *rundb.Run is one. Snapshots yields the polls of a target in time order, each
// valid until the next; calls for different targets may overlap.
type Recording interface {
	Targets() []metric.Target
	Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error]
}
