package torchserve

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Read says what an import found.
type Read struct {
	OK, Ignored, Bad, Double int
	Filtered                 int      // left out by Keep and Drop
	FirstBad                 []string // the first five bad lines, with file and line number
	StartNS, EndNS           int64    // of the first and the last line
	Warnings                 []metric.Warning
}

// The limits on what an import holds in memory and unpacks.
const (
	maxEvents   = 20_000_000
	maxUnpacked = 16 << 30
)

// event is a line with its time and place.
type event struct {
	line Line
	at   int64
	file int32
	hash uint64 // of its text, for the guard
}

// Import reads complete logs: files, folders with the two metric logs, patterns; a name that ends in .gz is unpacked,
// and "-" is stdin. It gives one snapshot for each millisecond in which something was logged, in order, and before them
// one that shows all sums as 0. A snapshot is valid during the call.
//
// What cannot be read of a file costs those lines only, and is counted in Read.
func Import(ctx context.Context, paths []string, stdin io.Reader, o Options,
	record func(*metric.Snapshot) error) (*Read, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	files, err := expandAll(paths)
	if err != nil {
		return nil, err
	}
	im := &importer{o: o, r: newReader(o), read: &Read{}}
	im.r.begin(time.Now().UnixNano())
	for i, path := range files {
		if err := im.file(ctx, i, path, stdin); err != nil {
			return im.read, fmt.Errorf("import %s: %w", path, err)
		}
	}
	if len(im.events) == 0 {
		return im.read, fmt.Errorf("import %s: no metric line in it (%d lines ignored, %d bad)", strings.Join(paths, " "),
			im.read.Ignored, im.read.Bad)
	}
	return im.read, im.replay(ctx, record)
}

// expandAll lists the files that paths stand for.
func expandAll(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		if p == "-" {
			out = append(out, p)
			continue
		}
		info, err := os.Stat(p)
		switch {
		case err == nil && info.IsDir():
			for _, name := range []string{"ts_metrics.log", "model_metrics.log"} {
				if f := filepath.Join(p, name); isFile(f) {
					out = append(out, f)
				}
			}
		case err == nil:
			out = append(out, p)
		default:
			matches, _ := filepath.Glob(p) // a bad pattern matches nothing
			if len(matches) == 0 {
				return nil, fmt.Errorf("import: %w", err)
			}
			out = append(out, matches...)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("import %s: no ts_metrics.log or model_metrics.log in it", strings.Join(paths, " "))
	}
	return out, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

type importer struct {
	o      Options
	r      reader
	read   *Read
	events []event
	seq    uint64
}

// file reads the lines of one file.
func (im *importer) file(ctx context.Context, index int, path string, stdin io.Reader) error {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close() // read only
		in = f
		if strings.HasSuffix(path, ".gz") {
			z, err := gzip.NewReader(bufio.NewReader(f))
			if err != nil {
				return err
			}
			in = io.LimitReader(z, maxUnpacked)
		}
	}
	im.r.known(index, path)
	lines := &tail{}
	n := 0
	emit := func(text []byte) { n++; im.take(index, path, n, text) }
	buf := make([]byte, maxChunk)
	for {
		got, err := in.Read(buf)
		lines.cut(buf[:got], emit)
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil && len(lines.partial) > 0:
			emit(lines.partial)
			lines.partial = nil
			fallthrough
		case err != nil:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case len(im.events) > maxEvents:
			return fmt.Errorf("it has more than %d metric lines; import it in parts", maxEvents)
		}
	}
}

func (im *importer) take(file int, path string, number int, text []byte) {
	l, err := ParseLine(text, im.o.Raw)
	switch {
	case errors.Is(err, ErrNoMetric):
		im.read.Ignored++
	case err != nil:
		im.bad(path, number, err)
	case !im.o.wants(l.Name):
		im.read.Filtered++
	default:
		e := event{line: l, at: im.r.timeOf(file, &l), file: int32(file)}
		if im.r.guard != nil {
			e.hash = im.r.guard.hash(l.text)
		}
		e.line.text = nil
		im.events = append(im.events, e)
	}
}

func (im *importer) bad(path string, number int, err error) {
	if im.read.Bad++; len(im.read.FirstBad) < 5 {
		where := ""
		if number > 0 {
			where = fmt.Sprintf("%s line %d: ", filepath.Base(path), number)
		}
		im.read.FirstBad = append(im.read.FirstBad, clip(where+err.Error()))
	}
}

// replay gives the events as snapshots: first one with all sums as 0, then one for each instant.
func (im *importer) replay(ctx context.Context, record func(*metric.Snapshot) error) error {
	slices.SortStableFunc(im.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	im.dropDoubles()
	im.read.OK = len(im.events)
	first, last := im.events[0].at, im.events[len(im.events)-1].at
	im.read.StartNS, im.read.EndNS = first, last
	for i := range im.events {
		im.r.table.declare(&im.events[i].line)
	}
	if err := im.record(first-int64(time.Millisecond), metric.Baseline, record); err != nil {
		return err
	}
	for i := 0; i < len(im.events); {
		at, until := im.events[i].at, im.events[i].at+int64(im.o.Step)
		im.r.begin(at)
		for ; i < len(im.events) && im.events[i].at <= until; i++ {
			at = im.events[i].at
			if err := im.r.table.add(&im.events[i].line, at); err != nil {
				im.read.OK--
				im.bad("", 0, err)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := im.record(at, metric.Periodic, record); err != nil {
			return err
		}
	}
	return nil
}

// dropDoubles leaves out the lines that another feed has too. Those stand together now that all are in order of time,
// so the guard, whose memory is bounded, knows them however long the logs are.
func (im *importer) dropDoubles() {
	if im.r.guard == nil {
		return
	}
	im.events = slices.DeleteFunc(im.events, func(e event) bool {
		double := im.r.guard.double(im.r.feeds[e.file], e.hash)
		if double {
			im.read.Double++
		}
		return double
	})
}

// record gives what the table shows as a snapshot.
func (im *importer) record(at int64, kind metric.Kind, record func(*metric.Snapshot) error) error {
	snap := &metric.Snapshot{Seq: im.seq, Kind: kind, DueNS: at, SentNS: at, FirstByteNS: at}
	im.seq++
	im.r.table.finish(snap, kind != metric.Baseline)
	im.read.Warnings = append(im.read.Warnings, snap.Warnings...)
	return record(snap)
}
