package lint_test

// layers is the import table of docs/architecture.md: which of our packages
// the files of a package may import. Tests may also import what these import
// in turn, and testSupport.
var layers = map[string][]string{
	"metric":             {},
	"units":              {},
	"histest":            {},
	"source":             {"metric"},
	"scrape":             {"metric", "source"},
	"source/triton":      {"metric", "source"},
	"source/torchserve":  {"metric", "source"},
	"source/process":     {"metric"},
	"source/promstore":   {"metric", "internal/timeline"},
	"source/otlp":        {"metric"},
	"source/reqfile":     {"metric", "source"},
	"source/trtllm":      {"metric", "source", "source/reqfile"},
	"source/aiperf":      {"metric", "internal/timeline"},
	"source/openmetrics": {"metric", "internal/timeline"},
	"source/tachometer":  {"metric", "internal/timeline"},
	"discover":           {"metric", "scrape"},
	"rundb":              {"metric", "internal/atomicfile", "internal/sqlitefile"},
	"events":             {"metric", "rundb", "histest", "internal/texttab"},
	"events/proxy":       {"metric", "events"},
	"events/align":       {},
	"events/join": {"metric", "events", "events/align", "catalog", "catalog/pack", "rundb", "summary", "normalize",
		"histest", "internal/texttab"},
	"continuity":       {"metric"},
	"normalize":        {"metric", "histest", "continuity", "internal/column"},
	"catalog/quantity": {"metric", "units"},
	"catalog/pack":     {"metric", "units", "catalog/quantity"},
	"catalog":          {"metric", "units", "catalog/pack", "catalog/quantity"},
	"window/traffic":   {"metric", "catalog"},
	"window":           {"metric", "window/traffic"},
	"summary": {"metric", "continuity", "normalize", "histest", "units", "catalog", "events", "rundb", "window",
		"window/traffic"},
	"collect": {"metric", "scrape", "discover", "source", "source/process", "source/promstore", "source/otlp", "rundb",
		"events", "events/proxy", "summary", "catalog", "window", "window/traffic"},
	"export": {"summary", "query", "normalize", "histest", "catalog", "metric", "continuity", "internal/atomicfile",
		"internal/column", "internal/gain", "internal/parquetwriter", "internal/texttab", "window", "window/traffic"},
	"export/lake": {"summary", "continuity", "metric", "internal/atomicfile", "internal/column", "internal/gain",
		"internal/parquetwriter"},
	"export/lake/sql": {},
	"check": {"explain", "headline", "summary", "continuity", "histest", "catalog", "normalize", "events",
		"events/join", "units", "metric", "internal/suggest", "internal/texttab"},
	"export/trace": {},
	"headline":     {"summary", "catalog", "normalize", "histest"},
	"query": {"headline", "summary", "catalog", "continuity", "normalize", "histest", "units", "metric",
		"internal/suggest", "internal/texttab"},
	"explain":      {"summary", "catalog", "metric", "units", "internal/suggest", "internal/texttab"},
	"sweep/phases": {},
	"sweep": {"summary", "catalog", "normalize", "check", "explain", "headline", "metric", "units",
		"internal/suggest", "internal/texttab"},
	"compare": {"compare/judge", "headline", "summary", "continuity", "normalize", "histest", "units", "catalog",
		"metric", "internal/student", "internal/texttab"},
	"compare/judge":       {"internal/student"},
	"history/changepoint": {"internal/student"},
	"history": {"summary", "catalog", "headline", "compare/judge", "history/changepoint", "metric", "histest", "normalize",
		"window", "internal/sqlitefile", "internal/texttab"},
	"report": {"explain", "headline", "sweep",
		"summary", "continuity", "window", "catalog", "compare", "compare/judge", "history", "units",
		"metric", "normalize", "histest", "internal/texttab"},
	"report/html": {"headline", "report", "sweep", "explain",
		"history", "summary", "continuity", "catalog", "compare", "units", "metric", "normalize",
		"histest",
		"events", "internal/texttab"},
	"serve":                    {"metric", "rundb", "summary", "internal/column"},
	"live":                     {"headline", "summary", "catalog", "normalize", "units", "metric", "internal/texttab"},
	"internal/simulate":        {"metric"},
	"internal/simulate/record": {"internal/simulate", "metric", "scrape", "events", "rundb"},
	"internal/doctor":          {"metric", "continuity", "scrape", "catalog", "catalog/pack", "internal/texttab"},
	"internal/mcp":             {"catalog", "metric", "query", "rundb", "window", "internal/suggest", "internal/texttab"},
	"cmd/scrapestat":           {everything},
	"lab":                      {},
	"internal/atomicfile":      {},
	"internal/column":          {"metric"},
	"internal/gain":            {"metric", "continuity", "normalize", "internal/column"},
	"internal/httpguard":       {},
	"internal/parquetwriter":   {"internal/column"},
	"internal/student":         {},
	"internal/suggest":         {},
	"internal/texttab":         {},
	"internal/sqlitefile":      {},
	"internal/house":           {},
	"internal/lint":            {},
	"internal/release":         {},
	"internal/timeline":        {"metric"},
	"internal/sourcetest":      {"metric"},
	"internal/badserver":       {},
	"internal/faults":          {everything},
	"internal/fuzzbound":       {},
	"internal/testkit":         {},
	"internal/testkit/fakerun": {"metric", "rundb"},
	"internal/rehelp":          {"units"},
}

// everything in a row of layers stands for all our packages.
const everything = "*"

// testSupport is what any test may import.
var testSupport = []string{"internal/simulate", "internal/simulate/record",
	"internal/sourcetest", "internal/badserver", "internal/faults",
	"internal/fuzzbound",
	"internal/testkit", "internal/testkit/fakerun"}

// home is where a third party may be imported.
type home struct {
	module string   // an import path and all below it; the longest match counts
	in     []string // folders, or single files, of ours
}

// anyTest in a home stands for all test files.
const anyTest = "tests"

// homes gives each third party its place ("Homes" of the dependency notes). An
// import without a home is refused.
var homes = []home{
	{"github.com/prometheus/prometheus/model", []string{"scrape/expo.go"}},
	{"github.com/prometheus/prometheus/model/labels", []string{"scrape/expo.go", "discover", "serve"}},
	{"github.com/prometheus/prometheus/model/relabel", []string{"discover"}},
	// Prometheus' engine, and nothing that serves, writes or configures: web/api/v1, storage/remote, config and tsdb
	// bring hundreds of packages (docs/decisions/0088).
	{"github.com/prometheus/prometheus/promql", []string{"serve"}},
	{"github.com/prometheus/prometheus/storage", []string{"serve"}},
	{"github.com/prometheus/prometheus/storage/remote", []string{}},
	{"github.com/prometheus/prometheus/util/annotations", []string{"serve"}},
	{"github.com/prometheus/prometheus/model/histogram", []string{"serve", "scrape/expo.go"}},
	{"github.com/prometheus/prometheus/prompb", []string{"source/promstore", "serve"}},
	{"github.com/prometheus/prometheus/tsdb/chunkenc", []string{"source/promstore", "serve"}},
	{"github.com/prometheus/common/expfmt", []string{"scrape", "internal/simulate", "internal/badserver", anyTest}},
	{"github.com/prometheus/common/model", []string{"serve", "scrape", "internal/simulate", "discover",
		"internal/badserver", anyTest}},
	{"github.com/prometheus/common/config", []string{"discover"}},
	{"github.com/prometheus/client_model/go", []string{"scrape", "internal/simulate", "internal/badserver", anyTest}},
	{"github.com/prometheus/client_golang", []string{"cmd/scrapestat"}},
	{"github.com/prometheus/client_golang/exp/api/remote", []string{"source/promstore"}},
	{"go.yaml.in/yaml/v3", []string{anyTest, "cmd/scrapestat/autotarget.go",
		"check", "discover", "source/torchserve", "catalog/pack",
		"explain", "export"}},
	{"modernc.org/sqlite", []string{"rundb", "internal/sqlitefile", "internal/rehelp", "history"}},
	{"github.com/klauspost/compress/zstd", []string{"rundb", "internal/faults"}},
	{"github.com/klauspost/compress/gzip", []string{"scrape"}},
	{"github.com/parquet-go/parquet-go", []string{"export", "internal/parquetwriter", "internal/faults",
		"source/tachometer", anyTest}},
	{"github.com/go-json-experiment/json", []string{"catalog/pack", "export", "source/promstore", "source/triton",
		"source/otlp"}},
	{"github.com/klauspost/compress/snappy", []string{"source/promstore", "serve"}},
	{"google.golang.org/grpc", []string{"source/triton", "internal/simulate", "source/otlp/otlp_test.go"}},
	{"google.golang.org/protobuf/encoding/protowire", []string{"source/promstore", "source/triton",
		"source/otlp"}},
	{"google.golang.org/protobuf/types/known/timestamppb", []string{"internal/simulate", anyTest}},
	{"gonum.org/v1/gonum/mathext", []string{"histest", "internal/student"}},
	{"gonum.org/v1/gonum/stat/distuv", []string{anyTest}},
	{"golang.org/x/perf/benchmath", []string{"compare"}},
	{"github.com/spf13/cobra", []string{"cmd/scrapestat"}},
	{"github.com/spf13/pflag", []string{"cmd/scrapestat"}},
	{"github.com/mattn/go-isatty", []string{"cmd/scrapestat"}},
	{"golang.org/x/sys/unix", []string{"cmd/scrapestat/foreground_unix.go", "rundb/hostclock_linux.go"}},
	{"charm.land/bubbletea/v2", []string{"live"}},
	{"github.com/modelcontextprotocol/go-sdk/mcp", []string{"internal/mcp", anyTest}},
	{"charm.land/lipgloss/v2", []string{"live"}},
	{"pgregory.net/rapid", []string{anyTest, "internal/sourcetest"}},
	{"go.uber.org/goleak", []string{anyTest, "internal/sourcetest"}},
	{"github.com/google/go-cmp", []string{anyTest, "internal/sourcetest"}},
	{"github.com/rogpeppe/go-internal", []string{anyTest}},
}

// goroutineOwners are the packages that may start goroutines; the function
// that starts them waits for them. parquetwriter makes row groups in
// parallel (docs/decisions/0001), export hashes beside it; badserver and sourcetest are servers and
// drivers of tests. source/torchserve reads pipes while nobody polls it.
var goroutineOwners = []string{"scrape", "rundb", "events", "events/proxy", "internal/simulate", "summary", "export",
	"collect",
	"cmd/scrapestat", "lab",
	"source/torchserve", "internal/badserver", "internal/sourcetest", "internal/parquetwriter"}

// exitFiles are the files that may end the process: of the command, and of the
// programs of the repository.
var exitFiles = []string{"cmd/scrapestat/main.go", "internal/release/main.go", "lab/main.go"}

// The limits on sizes, in lines.
const (
	maxFileLines     = 500
	maxTestFileLines = 800
	maxFuncLines     = 60
	maxColumns       = 120
	maxTopFolders    = 34 // with serve and lake
)

// vagueFolders and vagueFiles are names that say nothing about what is inside.
var (
	vagueFolders = []string{"util", "utils", "common", "types", "config", "core", "pkg", "lib", "helper", "helpers",
		"misc", "models", "interfaces", "shared", "base"}
	vagueFiles = []string{"util", "utils", "common", "types", "helper", "helpers", "misc", "models", "interfaces"}
)
