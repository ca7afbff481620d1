package tachometer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
)

// Options adjusts an import. The zero value is usable.
type Options struct {
	AnchorNS int64 // when time_since_start was 0, since 1970
	// Type is the type of a name, as a catalog has it; nil, or Unknown, leaves it to the suffix.
	Type       func(name string) metric.Type
	Step       time.Duration  // least time between two polls of a target
	Keep, Drop *regexp.Regexp // families, as scrape.Options has it
	Limits     timeline.Limits
}

// File is one file of a recording, which its name stands for in errors.
type File struct {
	Name string
	io.ReaderAt
	Size int64
}

// Stats is what became of the rows.
type Stats struct {
	timeline.Stats
	Refused []metric.Drop      // rows of which not even the series is known
	Steps   map[string]float64 // by name, the largest distance of two numbers near values that may be rounded
}

// The columns that are no labels, the first five of which must be there.
var known = []string{"scraper_endpoint", "metric_name", "metric_value", "histogram_bucket_upper", "time_since_start",
	"histogram_bucket_lower", "histogram_sum", "histogram_count", "metric_name_clean"}

const needed = 5

// samePoll is how far the rows of a poll are apart.
const samePoll = 5 * time.Millisecond

// table is an opened file and where its columns are.
type table struct {
	name    string
	file    *parquet.File
	columns []string
}

// Reader reads a recording. It has one owner.
type Reader struct {
	o      Options
	tables []table
	polls  map[string]map[float64]int64 // by endpoint, the time of the poll that a time belongs to
	extra  map[string]map[string]string // by endpoint, columns that have one value all over; "" of several
	t      *timeline.Timeline
	stats  Stats
	sums   map[string]string // by series of a histogram, the bucket whose rows give its sum and count
}

// Open opens the files of a recording, in their order. The error of a file without the columns names them.
func Open(files []File, o Options) (r *Reader, err error) {
	r = &Reader{o: o, polls: map[string]map[float64]int64{}, extra: map[string]map[string]string{},
		sums: map[string]string{}, stats: Stats{Steps: map[string]float64{}}}
	for _, f := range files {
		t := table{name: f.Name}
		err := guard(f.Name, func() (err error) {
			t.file, err = parquet.OpenFile(f, f.Size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, path := range t.file.Schema().Columns() {
			t.columns = append(t.columns, strings.Join(path, "."))
		}
		var missing []string
		for _, name := range known[:needed] {
			if !slices.Contains(t.columns, name) {
				missing = append(missing, name)
			}
		}
		if n := t.file.NumRows(); n > 100*f.Size { // so few bytes have none of them
			return nil, fmt.Errorf("%s is damaged: %d rows in %d bytes", f.Name, n, f.Size)
		}
		if len(missing) > 0 {
			return nil, fmt.Errorf("%s is no file of Tachometer: it has no column %s", f.Name, strings.Join(missing, ", "))
		}
		r.tables = append(r.tables, t)
	}
	return r, nil
}

// guard runs what the Parquet library may panic in: files are data of others.
func guard(name string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			err = fmt.Errorf("read %s: %w", name, err)
		}
	}()
	return f()
}

// row is one row of a file.
type row struct {
	endpoint, name string
	value          float64
	narrow         bool // the value has 32 bits
	sum, count     float64
	since          float64
	labels         []metric.Label // of other columns
}

// Import reads the files and gives their polls to sink. When reading breaks off, what was read is given to sink all the
// same. Import is called once.
func (r *Reader) Import(ctx context.Context, sink timeline.Sink) (Stats, error) {
	times := map[string]map[float64]bool{}
	err := r.rows(ctx, func(x *row) error {
		if times[x.endpoint] == nil {
			times[x.endpoint] = map[float64]bool{}
		}
		if finite(x.since) {
			times[x.endpoint][x.since] = true
		}
		r.label(x)
		return nil
	})
	for endpoint, seen := range times {
		r.polls[endpoint] = r.cluster(slices.Sorted(maps.Keys(seen)))
	}
	names := map[string]bool{}
	for _, t := range r.tables {
		for _, c := range t.columns {
			names[c] = true
		}
	}
	ids := []string{"instance"}
	for _, c := range slices.Sorted(maps.Keys(names)) {
		if !slices.Contains(known, c) {
			ids = append(ids, "target:"+c)
		}
	}
	r.t = timeline.New(timeline.Options{Source: "tachometer", TargetLabels: ids, Labelled: true, Step: r.o.Step,
		Keep: r.o.Keep, Drop: r.o.Drop, Limits: r.o.Limits}, sink)
	if err == nil {
		err = r.rows(ctx, r.add)
	}
	err = errors.Join(err, r.t.Flush(ctx))
	r.stats.Stats = r.t.Stats()
	return r.stats, err
}

func finite(v float64) bool { return metric.Finite(v) && math.Abs(v) < 1e9 }

// cluster gives each time that of its poll: times within samePoll of its first are one.
func (r *Reader) cluster(times []float64) map[float64]int64 {
	out := make(map[float64]int64, len(times))
	first := math.Inf(-1)
	for _, t := range times {
		if t-first > samePoll.Seconds() {
			first = t
		}
		out[t] = r.o.AnchorNS + int64(math.Round(first*1e9))
	}
	return out
}

// label notes which columns have one value for an endpoint.
func (r *Reader) label(x *row) {
	seen := r.extra[x.endpoint]
	if seen == nil {
		seen = map[string]string{}
		r.extra[x.endpoint] = seen
		for _, l := range x.labels {
			seen[l.Name] = l.Value
		}
	}
	for _, l := range x.labels {
		if v, ok := seen[l.Name]; !ok || v != l.Value {
			seen[l.Name] = ""
		}
	}
	for name := range seen {
		if !slices.ContainsFunc(x.labels, func(l metric.Label) bool { return l.Name == name }) {
			seen[name] = ""
		}
	}
}

// rows calls visit for each row, which is valid until the next.
func (r *Reader) rows(ctx context.Context, visit func(*row) error) error {
	buffer := make([]parquet.Row, 256)
	for i := range r.tables {
		t := &r.tables[i]
		err := guard(t.name, func() error {
			for _, group := range t.file.RowGroups() {
				if err := t.group(ctx, group, buffer, visit); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *table) group(ctx context.Context, group parquet.RowGroup, buffer []parquet.Row,
	visit func(*row) error) error {
	rows := group.Rows()
	defer rows.Close()
	var x row
	for {
		n, err := rows.ReadRows(buffer)
		for _, values := range buffer[:n] {
			t.row(&x, values)
			if err := visit(&x); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		if n == 0 {
			return io.ErrNoProgress
		}
	}
}

// row reads the values of a row.
func (t *table) row(x *row, values parquet.Row) {
	nan := math.NaN()
	*x = row{value: nan, sum: nan, count: nan, since: nan, labels: x.labels[:0]}
	for _, v := range values {
		if v.IsNull() {
			continue
		}
		switch name := t.columns[v.Column()]; name {
		case "scraper_endpoint":
			x.endpoint = v.String()
		case "metric_name":
			x.name = v.String()
		case "metric_value":
			x.value, x.narrow = number(v), v.Kind() == parquet.Float
		case "histogram_sum":
			x.sum = number(v)
		case "histogram_count":
			x.count = number(v)
		case "time_since_start":
			x.since = number(v)
		case "histogram_bucket_lower", "histogram_bucket_upper", "metric_name_clean":
		default:
			if v.Kind() == parquet.ByteArray && len(v.ByteArray()) > 0 {
				x.labels = append(x.labels, metric.Label{Name: name, Value: v.String()})
			}
		}
	}
}

// number is a value as the server wrote it as far as can be told: of 32 bits the shortest decimal that gives them, or
// the integer they are.
func number(v parquet.Value) float64 {
	switch v.Kind() {
	case parquet.Double:
		return v.Double()
	case parquet.Float:
		f := float64(v.Float())
		if f == math.Trunc(f) || math.IsNaN(f) {
			return f
		}
		short, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', -1, 32), 64) // of what it wrote itself
		return short
	}
	return math.NaN()
}

// add gives a row to the timeline.
func (r *Reader) add(x *row) error {
	name, labels, ok := ParseName(x.name)
	at, timed := r.polls[x.endpoint][x.since]
	if !ok || !timed || x.endpoint == "" {
		reason := "parse"
		if ok {
			reason = "no_timestamp"
		}
		r.stats.Refused = metric.AddDrop(r.stats.Refused, reason, 1, func() string { return timeline.Clean(x.name, 150) })
		return nil
	}
	labels = append(labels, metric.Label{Name: "instance", Value: x.endpoint})
	for _, l := range x.labels {
		if r.extra[x.endpoint][l.Name] != "" {
			l.Name = "target:" + l.Name
		}
		labels = append(labels, l)
	}
	return r.sample(x, name, labels, at)
}

// sample adds the value of a row, and of one bucket of a histogram its sum and count.
func (r *Reader) sample(x *row, name string, labels []metric.Label, at int64) error {
	if x.narrow && math.Abs(x.value) > 1<<24 && !math.IsInf(x.value, 0) {
		v := float32(math.Abs(x.value))
		r.stats.Steps[name] = max(r.stats.Steps[name], float64(math.Nextafter32(v, math.MaxFloat32)-v))
	}
	le := slices.IndexFunc(labels, func(l metric.Label) bool { return l.Name == "le" })
	if le < 0 {
		r.describe(name)
		return r.t.Series(name, labels).Add(at, x.value)
	}
	if err := r.t.Series(name+"_bucket", labels).Add(at, x.value); err != nil {
		return err
	}
	bound := labels[le].Value
	rest := slices.Delete(slices.Clone(labels), le, le+1)
	id := name + metric.NewLabels(rest...).String()
	if r.sums[id] == "" {
		r.sums[id] = bound
		r.t.Describe(name, timeline.Meta{Type: metric.Histogram})
	}
	if r.sums[id] != bound || math.IsNaN(x.count) {
		return nil
	}
	if err := r.t.Series(name+"_count", rest).Add(at, x.count); err != nil {
		return err
	}
	return r.t.Series(name+"_sum", rest).Add(at, x.sum)
}

// describe declares the type of a name that a catalog knows.
func (r *Reader) describe(name string) {
	if r.o.Type == nil {
		return
	}
	switch typ := r.o.Type(name); typ {
	case metric.Counter, metric.Gauge:
		r.t.Describe(name, timeline.Meta{Type: typ})
	}
}
