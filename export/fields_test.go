package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// fieldsPage documents each field of the exports.
const fieldsPage = "../docs/data/fields.md"

// documentedFields are the names in the first column of the tables of a section.
func documentedFields(t *testing.T, section string) []string {
	t.Helper()
	page, err := os.ReadFile(fieldsPage)
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "\n"+section+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", fieldsPage, section)
	}
	level, _, _ := strings.Cut(section, " ")
	text, _, _ = strings.Cut(text, "\n## ")
	text, _, _ = strings.Cut(text, "\n"+level+" ")
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) < 2 {
			continue
		}
		parent := ""
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			name := m[1]
			if strings.HasPrefix(name, ".") {
				name = parent + name // beside the one before
			} else if i := strings.LastIndexByte(name, '.'); i >= 0 {
				parent = name[:i]
			}
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s documents no field in %q", fieldsPage, section)
	}
	return out
}

// sameFields wants the same names on both sides.
func sameFields(t *testing.T, what string, documented, real []string) {
	t.Helper()
	for _, name := range real {
		if !slices.Contains(documented, name) {
			t.Errorf("%s: field %s has no line in %s", what, name, fieldsPage)
		}
	}
	for _, name := range documented {
		if !slices.Contains(real, name) {
			t.Errorf("%s: %s documents %s, which does not exist", what, fieldsPage, name)
		}
	}
}

// jsonNames are the names of members that this package writes: those of the tags
// of the schema, those of statistics and those that yield gives.
func jsonNames(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{"active_share": true}
	for _, p := range []int{1, 5, 10, 25, 50, 75, 90, 95, 99} {
		names[fmt.Sprint("p", p)], names[fmt.Sprint("p", p, "_estimate")] = true, true
	}
	files, err := filepath.Glob("json*.go")
	if err != nil {
		t.Fatal(err)
	}
	literal := func(list []ast.Expr) {
		if len(list) == 0 {
			return
		}
		if text, ok := list[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
			key, _ := strconv.Unquote(text.Value)
			names[key] = true
		}
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "jsonl.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				if n.Tag != nil {
					tag, _, _ := strings.Cut(reflect.StructTag(strings.Trim(n.Tag.Value, "`")).Get("json"), ",")
					names[tag] = true
				}
			case *ast.CompositeLit:
				literal(n.Elts)
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "yield" {
					literal(n.Args)
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(names))
}

// namedByRun are objects whose members have names that the run gives.
var namedByRun = regexp.MustCompile(`(?:^|\.)(?:metrics|endpoint_info|labels|buckets|percentiles|quantiles|` +
	`server_quantiles|tags|limits|units|outcomes|outcomes_in_window|limits_hit|options)$`)

// pathsOf lists the paths of the values of a document: a.b, a[].b, and a.* where
// the run names the members.
func pathsOf(v any, path string, out map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if namedByRun.MatchString(path) && path != "scrapestat.options" {
				name = "*"
			}
			pathsOf(member, strings.TrimPrefix(path+"."+name, "."), out)
		}
	case []any:
		for _, element := range v {
			switch element.(type) {
			case map[string]any:
				pathsOf(element, path+"[]", out)
			default:
				out[path] = true
			}
		}
	default:
		out[path] = true
	}
}

// sameForm are objects of one form: the page has the fields of the second, and
// says so at the first.
var sameForm = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`^warmup_metrics\.[^.]+\.`), "metrics.*."},
	{regexp.MustCompile(`^scrapestat\.(?:conflicting_metrics|conflicting_warmup_metrics)\[\]\.metric\.`), "metrics.*."},
	{regexp.MustCompile(`^scrapestat\.conflicting_warmup_metrics\[`), "scrapestat.conflicting_metrics["},
	{regexp.MustCompile(`^scrapestat\.warmup_metrics\[`), "scrapestat.metrics["},
	{regexp.MustCompile(`^scrapestat\.fleet\[\]\.derived\[`), "scrapestat.derived["},
	{regexp.MustCompile(`^scrapestat\.warmup_window\.`), "scrapestat.window."},
	{regexp.MustCompile(`^scrapestat\.endpoints\[\]\.fetches_in_(?:window|warmup)\.`), "summary.endpoint_info.*."},
	{regexp.MustCompile(`^scrapestat\.endpoints\[\]\.last_error\.`), "scrapestat.endpoints[].first_error."},
	{regexp.MustCompile(`^summary\.phase_time_ranges\.warmup\.`), "summary.phase_time_ranges.profiling."},
	{regexp.MustCompile(`^scrapestat\..*\.percentiles\.\*\.`), "scrapestat.series[].percentiles.*."},
	{regexp.MustCompile(`^scrapestat\..*warnings\[\]\.`), "scrapestat.warnings[]."},
	{regexp.MustCompile(`^scrapestat\.latencies\[\]\.`), "scrapestat.aggregates.groups[]."},
	{regexp.MustCompile(`^scrapestat\.aggregates\.groups\[\]\.(canonical|engine)$`), "scrapestat.latencies[].$1"},
}

// TestFieldsJSON holds the page against the JSON: every name that the source can
// write is on it and no other, and every value of exports that have each kind of
// section is at a documented path.
func TestFieldsJSON(t *testing.T) {
	documented := documentedFields(t, "## JSON, field by field")
	names := map[string]bool{}
	for _, path := range documented {
		path = strings.ReplaceAll(strings.ReplaceAll(path, "[]", ""), "p99.9", "p99,9")
		for name := range strings.SplitSeq(path, ".") {
			if name != "*" {
				names[strings.ReplaceAll(name, ",", ".")] = true
			}
		}
	}
	sameFields(t, "JSON", slices.Sorted(maps.Keys(names)), jsonNames(t))
	paths := map[string]bool{}
	for _, doc := range fullDocuments(t) {
		var v any
		if err := json.Unmarshal(doc, &v); err != nil {
			t.Fatal(err)
		}
		pathsOf(v, "", paths)
	}
	for path := range paths {
		known := path
		for _, f := range sameForm {
			known = f.from.ReplaceAllString(known, f.to)
		}
		if !slices.Contains(documented, known) {
			t.Errorf("JSON: %s has no line in %s", path, fieldsPage)
		}
	}
	if len(paths) < 250 {
		t.Errorf("only %d kinds of values were written", len(paths))
	}
}

// manyKinds is a run with a metric of each type, two endpoints that disagree on
// one, and one that fails.
func manyKinds() *fakeRun {
	f := newFake("http://a", "http://b").Mark(1, metric.PhaseWarmup).Mark(2, metric.PhaseProfiling)
	for i := range 6 {
		f.Scrape(0, float64(i), fmt.Sprintf("# TYPE s summary\ns{q=\"1\",quantile=\"0.5\"} 1\n"+
			"s_sum{q=\"1\"} %[1]d\ns_count{q=\"1\"} %[1]d\n"+
			"# TYPE st stateset\nst{st=\"a\"} %[2]d\n"+
			"# TYPE in info\nin{v=\"1\"} 1\n# TYPE gh gaugehistogram\ngh_bucket{le=\"1\"} %[1]d\ngh_bucket{le=\"+Inf\"} %[1]d\n"+
			"gh_sum %[1]d\ngh_count %[1]d\n"+
			"# TYPE two counter\ntwo %[1]d\n", i, i%2))
		f.Scrape(1, float64(i), fmt.Sprintf("# TYPE two gauge\ntwo %d\n", i))
	}
	return f
}

// fullDocuments are exports that have between them each kind of section.
func fullDocuments(t *testing.T) [][]byte {
	t.Helper()
	golden, _ := goldenRun(t)
	kinds, _ := runOfFake(t, manyKinds(), summary.Options{Slice: 1500 * time.Millisecond})
	many, _ := runOfFake(t, twins(), summary.Options{Slice: time.Second, SliceQuantiles: true, By: []string{"m"}})
	var out [][]byte
	for _, r := range []*summary.Run{golden, kinds, many, togetherRun(t), derivedRun()} {
		out = append(out, jsonOf(t, r, inUTC))
	}
	return out
}

// TestFieldsJSONL holds the page against the lines of runs with each type.
func TestFieldsJSONL(t *testing.T) {
	paths := map[string]bool{}
	for _, f := range []*fakeRun{golden(), manyKinds()} {
		r, recs := runOfFake(t, f, summary.Options{})
		for line := range bytes.Lines(jsonlOf(t, r, recs)) {
			var v any
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatal(err)
			}
			pathsOf(v, "", paths)
		}
	}
	sameFields(t, "JSONL", documentedFields(t, "## JSON Lines, field by field"), slices.Sorted(maps.Keys(paths)))
}

// TestFieldsCSV holds the page against the heads of the sections.
func TestFieldsCSV(t *testing.T) {
	columns := map[string]bool{}
	labels := []string{"engine", "model", "phase", "q", "st"}
	for _, f := range []*fakeRun{golden(), manyKinds()} {
		r, _ := runOfFake(t, f, summary.Options{Slice: time.Second})
		for _, section := range readCSV(t, csvOf(t, r)) {
			for _, name := range section[0] {
				columns[name] = !slices.Contains(labels, name)
			}
		}
	}
	maps.DeleteFunc(columns, func(_ string, is bool) bool { return !is })
	sameFields(t, "CSV", documentedFields(t, "## CSV, column by column"), slices.Sorted(maps.Keys(columns)))
}

// TestFieldsParquet holds the page against the schemas of the three files.
func TestFieldsParquet(t *testing.T) {
	golden, recs := goldenRun(t)
	check := func(section string, labels []string, write func(*bytes.Buffer) error) {
		t.Helper()
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		var columns []string
		for _, c := range f.Root().Columns() {
			if !slices.Contains(labels, c.Name()) {
				columns = append(columns, c.Name())
			}
		}
		sameFields(t, section, documentedFields(t, section), columns)
	}
	check("### Layout aiperf", []string{"engine", "model", "phase", "block", "dtype"}, func(b *bytes.Buffer) error {
		return export.Parquet(t.Context(), b, golden, recs, inUTC)
	})
	check("### Layout tidy", nil, func(b *bytes.Buffer) error {
		return export.TidyParquet(t.Context(), b, golden, recs, inUTC)
	})
	check("### derived.parquet", nil, func(b *bytes.Buffer) error {
		return export.DerivedParquet(b, togetherRun(t), inUTC)
	})
}

// TestFieldsManifest holds the page against the type that is written.
func TestFieldsManifest(t *testing.T) {
	var paths []string
	manifestPaths(reflect.TypeFor[rundb.Manifest](), "", &paths)
	sameFields(t, "manifest", documentedFields(t, "## manifest.json, field by field"), paths)
}

func manifestPaths(typ reflect.Type, path string, out *[]string) {
	switch {
	case typ.Kind() == reflect.Struct && typ != reflect.TypeFor[time.Time]():
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name == "" {
				name = typ.Field(i).Name
			}
			manifestPaths(typ.Field(i).Type, strings.TrimPrefix(path+"."+name, "."), out)
		}
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct:
		manifestPaths(typ.Elem(), path+"[]", out)
	case typ.Kind() == reflect.Map:
		*out = append(*out, path+".*")
	default:
		*out = append(*out, path)
	}
}
