package export_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/summary"
)

// readCSV splits a CSV into its sections; the first row of each is its header.
func readCSV(t testing.TB, doc []byte) [][][]string {
	t.Helper()
	lines := bytes.SplitAfterN(doc, []byte("\n"), 7)
	if len(lines) < 7 || string(lines[5]) != "#\n" {
		t.Fatalf("no header of six lines:\n%s", doc)
	}
	for _, l := range lines[:6] {
		if l[0] != '#' || bytes.Contains(l, []byte("\r")) {
			t.Fatalf("header line %q", l)
		}
	}
	var out [][][]string
	if len(lines[6]) == 0 {
		return nil
	}
	for _, part := range splitSections(string(lines[6])) {
		r := csv.NewReader(strings.NewReader(part)) // refuses rows of different length
		rows, err := r.ReadAll()
		if err != nil {
			t.Fatalf("%v in:\n%s", err, part)
		}
		out = append(out, rows)
	}
	return out
}

// splitSections cuts at empty rows that are not inside quotes.
func splitSections(s string) []string {
	var out []string
	start, quoted := 0, false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case !quoted && strings.HasPrefix(s[i:], "\r\n\r\n"):
			out = append(out, s[start:i+2])
			start = i + 4
		}
	}
	return append(out, s[start:])
}

// labelled is a run of counters with the given label names, one set per series.
func labelled(sets ...string) *fakeRun {
	f := newFake("u")
	body := "# TYPE c counter\n"
	for i, set := range sets {
		var pairs []string
		for name := range strings.SplitSeq(set, " ") {
			pairs = append(pairs, fmt.Sprintf(`%s="%d"`, name, i))
		}
		body += "c{" + strings.Join(pairs, ",") + "} 1\n"
	}
	f.Scrape(0, 0, body)
	f.Scrape(0, 1, body)
	return f
}

// TestLabelColumns has case 62 of aiperf.md section 8.
func TestLabelColumns(t *testing.T) {
	check := func(want string, sets ...string) {
		t.Helper()
		r, _ := runOfFake(t, labelled(sets...), summary.Options{})
		header := readCSV(t, csvOf(t, r))[0][0]
		if got := strings.Join(header[10:len(header)-1], ","); got != want {
			t.Errorf("%q: got %s, want %s", sets, got, want)
		}
	}
	check("engine,model_name,method,status", "engine model_name", "method status")
	check("engine,version,model_name,method,status", "engine model_name", "model_name version", "method status")
	check("a", "a", "a")
	check("b,a,c", "a b", "a c", "a c") // b is in one series; a and c are shared
	check("a,b,y,z", "b y", "a z", "b y z")
}

// TestRowOrder checks that rows are sorted by which columns they fill, then by
// metric, endpoint and labels.
func TestRowOrder(t *testing.T) {
	r, _ := runOfFake(t, labelled("b", "a", "a b", "a"), summary.Options{})
	var got []string
	for _, row := range readCSV(t, csvOf(t, r))[0][1:] {
		got = append(got, strings.Join(row[10:12], "|"))
	}
	if want := []string{"|0", "1|", "3|", "2|2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestInfoSection has case 61: info metrics are only in the last section, and
// their labels are no columns of another.
func TestInfoSection(t *testing.T) {
	f := newFake("http://b/metrics", "https://a:9/x/metrics?y=1")
	for i := range f.Polled {
		for n := range 2 {
			f.Scrape(i, float64(n), "# HELP z_info About, \"z\".\n# TYPE z_info gauge\nz_info{v=\"1\",k=\"=x\"} 1\n# TYPE "+
				"a_info gauge\na_info{b=\"2\"} 1\n"+
				"# TYPE g gauge\ng 1\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\nh_bucket{q=\"1\","+
				"le=\"2\"} 0\nh_count{q=\"1\"} 0\n# TYPE u unknown\nu 1\n# TYPE c_info counter\nc_info{k=\"2\"} 1\n"+
				"c_info{w=\"3\"} 1\n# TYPE d counter\nd{k=\"9\"} 1\n")
		}
	}
	r, _ := runOfFake(t, f, summary.Options{})
	sections := readCSV(t, csvOf(t, r))
	var types []string
	for _, s := range sections[:len(sections)-1] {
		types = append(types, s[1][1]+" "+s[1][2])
	}
	if diff := cmp.Diff([]string{"gauge g", "counter c_info", "histogram h", "unknown u"}, types); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
	want := [][]string{
		{"Endpoint", "Metric", "Key", "Value", "Description"},
		{"a:9/x", "a_info", "b", "2", ""}, {"b", "a_info", "b", "2", ""},
		{"a:9/x", "z_info", "k", "'=x", `About, "z".`}, {"a:9/x", "z_info", "v", "1", `About, "z".`},
		{"b", "z_info", "k", "'=x", `About, "z".`}, {"b", "z_info", "v", "1", `About, "z".`},
	}
	if diff := cmp.Diff(want, sections[len(sections)-1]); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
	if header := sections[0][0]; slices.Contains(header, "k") || slices.Contains(header, "v") {
		t.Errorf("labels of info metrics are columns of gauges: %q", header)
	}
	var counters []string // metric and the only label column
	for _, row := range sections[1] {
		counters = append(counters, strings.Join(append(row[2:3:3], row[10:]...), " "))
	}
	if want := []string{"Metric k Description", "c_info  ", "c_info  ", "c_info  ", "c_info  ", "d 9 ",
		"d 9 "}; !slices.Equal(counters, want) {
		t.Errorf("counters %q, want %q", counters, want)
	}
}

// TestCSVAgreesWithJSON compares every statistic of both formats, found by the
// names of columns and keys.
func TestCSVAgreesWithJSON(t *testing.T) {
	r, _ := goldenRun(t)
	doc := parse(t, jsonOf(t, r, inUTC))
	compared := 0
	for _, section := range readCSV(t, csvOf(t, r)) {
		header := section[0]
		if header[1] != "Type" || section[1][1] == "summary" {
			continue
		}
		for _, row := range section[1:] {
			for _, s := range at(t, doc, "metrics", row[2], "series").([]any) {
				labels, _ := s.(tree)["labels"].(tree)
				same := strings.Contains(s.(tree)["endpoint_url"].(string), row[0])
				for i, column := range header {
					if v, ok := labels[column]; ok && column != "Metric" {
						same = same && v == row[i]
					}
				}
				if !same {
					continue
				}
				for i, column := range header {
					if v, ok := at(t, s, "stats").(tree)[column]; ok {
						compared++
						want := fmt.Sprintf("%.4f", v)
						if column == "count" {
							want = fmt.Sprint(v)
						}
						if row[i] != want {
							t.Errorf("%s %s: CSV has %s, JSON %v", row[2], column, row[i], v)
						}
					}
				}
			}
		}
	}
	if compared < 50 {
		t.Errorf("only %d values compared", compared)
	}
}

// TestCSVCells checks single cells that JSON leaves out.
func TestCSVCells(t *testing.T) {
	f := newFake("u")
	f.Info.ID = "a\nb"
	for i := range 3 {
		f.Scrape(0, float64(i), fmt.Sprintf("# HELP c Two\\nlines\n# TYPE c counter\nc %d\n# TYPE h histogram\n"+
			"h_bucket{le=\"1\"} 0\nh_count 0\n", i))
	}
	for _, p := range f.Polled[0].Polls {
		for i := range p.DictDelta.Families {
			p.DictDelta.Families[i].Help = "Two\nlines"
		}
	}
	r, _ := runOfFake(t, f, summary.Options{Quantiles: []float64{0.5}, Slice: time.Minute})
	doc := string(csvOf(t, r))
	for _, want := range []string{"# benchmark_id: a b\n", "u,counter,c,,2.0000,1.0000,,,,,\"Two\nlines\"\r\n",
		"u,histogram,h,,0,,,,,,,,,,,,,,\"Two\nlines\",1=0\r\n"} {
		if !strings.Contains(doc, want) {
			t.Errorf("%q is missing in:\n%q", want, doc)
		}
	}
}

// TestCSVIncrease: a section with a series that is not certain, or was born, says so in its last columns, and a label
// keeps its name; sections without one are as they were.
func TestCSVIncrease(t *testing.T) {
	f := newFake("http://a/metrics")
	for i, v := range []int{1000, 1400, 1800, 2200} {
		body := fmt.Sprintf("# TYPE g gauge\ng 1\n# TYPE req counter\nreq{status=\"2xx\"} %d\n"+
			"# TYPE tok counter\ntok %d\n", v, i)
		if i > 1 {
			body += "req{status=\"5xx\"} 137\n"
		}
		f.Scrape(0, float64(i), body)
	}
	r, _ := runOfFake(t, f, summary.Options{})
	sections := readCSV(t, csvOf(t, r))
	var got []string
	for _, row := range sections[len(sections)-1] {
		got = append(got, strings.Join(row[len(row)-5:], ","))
	}
	want := []string{"status,Description,increase_status,low,high", ",,ok,,", "2xx,,ok,,",
		"5xx,,born_in_window,137.0000,137.0000"}
	if len(sections) != 2 || !slices.Equal(got, want) || slices.Contains(sections[0][0], "low") {
		t.Errorf("got %q of %q, want %q", got, sections, want)
	}
}
