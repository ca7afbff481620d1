package sql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// Query is what a statement computes.
type Query struct {
	Dialect   string
	Statistic string
	Lake      string // its path, as the engine sees it
	Run       string // a regular expression that the whole name matches; "" for all
	Metric    string // a family; "" for all
	Phase     string // "" for the window of each run
	Instance  int    // of the phase, 0 for the only one
	// FromNS and ToNS are the window since the origin of each run where Span is set; ToNS 0 is the end of its window.
	FromNS, ToNS int64
	Span         bool
	SliceNS      int64    // of statistic slices
	By           []string // labels whose groups are taken together; nil for each series by itself
	Percentiles  []float64
}

// Statistics returns the names of the statistics.
func Statistics() []string {
	return []string{"totals", "histograms", "quantiles", "gauges", "slices", "runs"}
}

// Statement returns one statement, which ends without a semicolon. What it cannot express is an error.
func Statement(q Query) (string, error) {
	d := dialectOf(q.Dialect)
	switch {
	case d == nil:
		return "", fmt.Errorf("unknown dialect %q (known: %s)", q.Dialect, strings.Join(Dialects(), ", "))
	case !slices.Contains(Statistics(), q.Statistic):
		return "", fmt.Errorf("unknown statistic %q (known: %s)", q.Statistic, strings.Join(Statistics(), ", "))
	case q.Lake == "" || strings.ContainsAny(q.Lake, "*?[]{}\x00"):
		return "", fmt.Errorf("lake %q: engines take * ? [ ] { } in a path for patterns", q.Lake)
	case q.Statistic == "slices" && q.SliceNS <= 0:
		return "", fmt.Errorf("statistic slices needs --slice-duration")
	case q.By != nil && q.Statistic != "totals" && q.Statistic != "quantiles":
		return "", fmt.Errorf("--by is for statistics totals and quantiles: of gauges only the catalog knows how, " +
			"and other statistics are of one series each")
	case strings.Contains(q.Run+q.Metric+q.Phase+strings.Join(q.By, ""), "\x00"):
		return "", fmt.Errorf("a name holds a zero byte")
	}
	s := &statement{Query: q, d: d}
	if s.Percentiles == nil {
		s.Percentiles = []float64{1, 5, 10, 25, 50, 75, 90, 95, 99}
	}
	s.Lake = strings.TrimRight(q.Lake, "/")
	t, err := template.New("").Funcs(s.functions()).Parse(templates)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, q.Statistic, s); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

// statement is what the templates see.
type statement struct {
	Query
	d *dialect
}

func (s *statement) functions() template.FuncMap {
	return template.FuncMap{
		"quote": s.d.quote, "table": func(name string) string { return s.d.table(s.Lake, name) }, "unnest": s.d.unnest,
		"explode": s.d.explode, "minus": s.d.minus, "zero": s.d.zero, "join": s.d.join, "matches": s.d.matches,
		"div": s.d.div, "lag": s.d.lag, "percentile": s.d.percentile,
		"share": func(p float64) string { return strconv.FormatFloat(p/100, 'e', -1, 64) },
		"column": func(p float64) string {
			return "p" + strings.ReplaceAll(strconv.FormatFloat(p, 'f', -1, 64), ".", "_")
		},
		"number": func(p float64) string { return strconv.FormatFloat(p, 'e', -1, 64) },
		"keys":   s.keys, "names": s.names,
		"least": func() string { return "-1.7976931348623157e308" }, // of finite numbers, also where NaN is above all
		"most":  func() string { return "1.7976931348623157e308" },
		"of": func(table string) string {
			var columns []string
			for _, name := range strings.Split(s.names(), ", ") {
				columns = append(columns, table+"."+name+" AS "+name)
			}
			return strings.Join(columns, ", ")
		},
		"on": func(a, b string) string {
			var terms []string
			for _, name := range strings.Split(s.names(), ", ") {
				terms = append(terms, a+"."+name+" = "+b+"."+name)
			}
			return strings.Join(terms, " AND ")
		},
	}
}

// selection is what table series is read for.
type selection struct {
	Q     *statement
	Types string
}

// Of selects series of these types.
func (s *statement) Of(types string) selection { return selection{s, types} }

// Each reports whether each series stands by itself.
func (s *statement) Each() bool { return s.By == nil }

// Lists are the columns of histograms.
func (s *statement) Lists() []string { return []string{"count", "sum", "buckets", "buckets_f"} }

// label is a column or label of a series, as a text.
func (s *statement) label(name string) string {
	switch name {
	case "endpoint":
		return "endpoint_url"
	case "target":
		return "coalesce(endpoint_name, endpoint_url)"
	}
	return "coalesce(labels[" + s.d.quote(name) + "], '')"
}

// keys are the columns by which a statistic groups, each with its name.
func (s *statement) keys() string {
	columns := []string{"run", "metric_name"}
	if s.By == nil {
		columns = append(columns, "content", "series_id")
	}
	for i, name := range s.By {
		columns = append(columns, s.label(name)+" AS by_"+strconv.Itoa(i+1))
	}
	return strings.Join(columns, ", ")
}

// names are the names of keys.
func (s *statement) names() string {
	names := "run, metric_name"
	if s.By == nil { // a map cannot be grouped by
		return names + ", content, series_id"
	}
	for i := range s.By {
		names += ", by_" + strconv.Itoa(i+1)
	}
	return names
}
