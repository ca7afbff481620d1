package catalog_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
)

// goldenSlices is how many slices each window of the golden results has.
const goldenSlices = 10

// TestResults keeps every result of every body and simulated server what it was, to
// the last bit: those of windows in full, those of slices by a hash for each pack.
func TestResults(t *testing.T) {
	const path = "testdata/results.golden"
	var got bytes.Buffer
	for _, r := range recorded(t) {
		r.write(t, &got)
	}
	lines := slices.Sorted(strings.Lines(got.String())) // a new order of quantities changes nothing
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	differ(t, string(want), got.String())
}

// differ reports the lines that only one of two texts has, up to a few of them.
func differ(t *testing.T, want, got string) {
	t.Helper()
	lines := map[string]int{}
	for line := range strings.Lines(want) {
		lines[line]--
	}
	n := 0
	report := func(sign, line string) {
		if n++; n <= 60 {
			t.Errorf("%s %s", sign, strings.TrimSuffix(line, "\n"))
		}
	}
	for line := range strings.Lines(got) {
		if lines[line]++; lines[line] > 0 {
			report("got ", line)
		}
	}
	for line := range strings.Lines(want) {
		if lines[line] < 0 {
			lines[line]++
			report("want", line)
		}
	}
}

// recording is what one server gained in a window and its slices.
type recording struct {
	name   string
	window catalog.Interval
	slices []catalog.Interval
}

func (r *recording) write(t *testing.T, out *bytes.Buffer) {
	c, err := catalog.New(strings.NewReader("inputs: {peak_tflops: 900, peak_gb_s: 3000, " +
		"slo: {ttft_s: 0.5, itl_s: 0.05, tpot_s: 0.05, e2e_s: 5, queue_s: 0.02}}"))
	if err != nil {
		t.Fatal(err)
	}
	slice := map[string][]string{} // lines by pack
	plan := c.Plan()
	for _, d := range plan.Derive(r.window, catalog.Window) {
		line(out, r.name, d)
	}
	for k, s := range r.slices {
		for _, d := range plan.Derive(s, catalog.Slice) {
			var one bytes.Buffer
			line(&one, strconv.Itoa(k), d)
			slice[d.Pack] = append(slice[d.Pack], one.String())
		}
	}
	for _, p := range slices.Sorted(maps.Keys(slice)) {
		h := fnv.New64a()
		slices.Sort(slice[p])
		fmt.Fprint(h, slice[p])
		fmt.Fprintf(out, "%s %s slices %016x\n", r.name, p, h.Sum64())
	}
}

// line writes a result; floats are as short as tells them apart.
func line(out interface{ Write([]byte) (int, error) }, name string, d catalog.Derived) {
	num := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	fmt.Fprintf(out, "%s %s %s%s %s", name, d.Pack, d.Name, d.Labels, d.Status)
	if d.Status.Defined() {
		fmt.Fprintf(out, " %s", num(d.Value))
	}
	if d.Shown != d.Value {
		fmt.Fprintf(out, " shown %s", num(d.Shown))
	}
	if d.HasParts {
		fmt.Fprintf(out, " of %s", num(d.Numerator))
	}
	if len(d.Flags) > 0 {
		fmt.Fprintf(out, " %v", d.Flags)
	}
	fmt.Fprintln(out)
}

// recorded returns all captured and simulated servers.
func recorded(t *testing.T) []recording {
	out := captured(t)
	for _, name := range simulate.Profiles() {
		w := played(t, name)
		out = append(out, w.record("simulated-"+name))
	}
	out = append(out, statistics(t), together(t, "simulated-dynamo", out), invented(t, false), invented(t, true))
	return out
}

// together is a pipeline with its GPUs: what follows from several endpoints.
func together(t *testing.T, name string, of []recording) recording {
	r := recording{name: "together"}
	for _, part := range of {
		if part.name != name && part.name != name+"-worker" && part.name != "simulated-dcgm" {
			continue
		}
		gains := append(r.window.Gains, part.window.Gains...)
		r.window = part.window
		r.window.Gains = gains
		for k, s := range part.slices {
			if len(r.slices) <= k {
				r.slices = append(r.slices, catalog.Interval{Seconds: s.Seconds})
			}
			r.slices[k].Gains = append(r.slices[k].Gains, s.Gains...)
		}
	}
	if len(r.slices) == 0 {
		t.Fatal("nothing to take together")
	}
	return r
}

// invented has two series of each family that the catalog knows, or with holes of
// most of them, with numbers made of their names: the engines that nobody recorded.
func invented(t *testing.T, holes bool) recording {
	r := recording{name: "invented", window: catalog.Interval{Seconds: 10, EndNS: 1_800_000_060e9}}
	for _, f := range known(t).Families() {
		for _, value := range []string{"0", "1"} {
			h := fnv.New32a()
			fmt.Fprint(h, f.Name)
			n := h.Sum32() % 997
			if holes && n%5 == 0 {
				continue
			}
			labels := map[string]string{"engine": value}
			for _, l := range f.Identity {
				labels[l] = "m"
			}
			for _, l := range f.Only {
				labels[l.Name] = l.Value
			}
			r.window.Gains = append(r.window.Gains, inventedGain(f, metric.LabelsFromMap(labels), float64(n+1)/7))
		}
	}
	if holes {
		r.name = "invented-holes"
	}
	sorted(r.window.Gains)
	r.slices = []catalog.Interval{r.window}
	return r
}

func inventedGain(f *catalog.Family, l metric.Labels, x float64) catalog.Gain {
	g := catalog.Gain{Family: f.Name, Type: f.Type, Labels: l}
	switch f.Type {
	case metric.Counter:
		g.Total, g.First, g.Last = x, 1, 1+x
	case metric.Histogram, metric.Summary:
		g.Count, g.Sum, g.HasSum = 10*x, x, true
		for i, upper := range []float64{0.01, 0.1, 0.5, 1, 10} {
			g.Buckets = append(g.Buckets, catalog.Bucket{Upper: upper, Count: 10 * x * float64(i+1) / 6})
		}
		g.Buckets = append(g.Buckets, catalog.Bucket{Upper: math.Inf(1), Count: 10 * x})
	default:
		g.Min, g.TimeAvg, g.Max, g.First, g.Last = x, 1.1*x, 1.3*x, x, 1.2*x
		for i := range f.Above {
			g.Above = append(g.Above, float64(i+1)/8)
		}
	}
	return g
}

func captured(t *testing.T) (out []recording) {
	for _, pair := range [][2]string{{"", "bentoml-load"}, {"", "dynamo-frontend-load"}, {"", "dynamo-worker-load"},
		{"", "sglang-driven"}, {"", "vllm-omni-0.30.0-allstages"}, {"", "vllm-0.32.0-idle-fresh"},
		{"llamacpp-idle", "llamacpp-load"}, {"torchserve-idle", "torchserve-load"}, {"triton-idle", "triton-load"},
		{"vllm-0.32.0-2apiservers-idle", "vllm-0.32.0-2apiservers-end"},
		{"vllm-0.32.0-before-run1", "vllm-0.32.0-after-run1"},
		{"vllm-0.32.0-spec-mfu-idle", "vllm-0.32.0-spec-mfu-under-load"},
		{"vllm-omni-0.30.0-t0", "vllm-omni-0.30.0-t1"}} {
		text := func(name string) body {
			if name == "" {
				return body{}
			}
			return readBody(string(testkit.Data(t, "bodies/"+name+".prom")))
		}
		w := between10(text(pair[0]), text(pair[1]))
		out = append(out, w.record(pair[1]))
	}
	return out
}

// between10 are bodies on the way from one to another.
func between10(from, to body) *watch {
	w := &watch{}
	for k := range goldenSlices + 1 {
		b := body{to.types, map[string]sample{}}
		for key, s := range to.series {
			before, was := from.series[key]
			if !was && k == 0 {
				continue
			}
			s.value = before.value + (s.value-before.value)*float64(k)/goldenSlices
			if k == goldenSlices {
				s.value = to.series[key].value
			}
			b.series[key] = s
		}
		w.bodies, w.at = append(w.bodies, b), append(w.at, float64(k))
	}
	return w
}

// played watches a simulated server of a profile under load.
func played(t *testing.T, profile string) *watch {
	t.Helper()
	start := time.Unix(1_800_000_000, 0)
	now := start
	o := loaded()
	o.Now = func() time.Time { return now }
	s, err := simulate.New(profile, o)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{}
	for k := range goldenSlices + 1 {
		now = start.Add(warmup + time.Duration(k)*6*time.Second)
		w.see(string(s.AppendBody(nil)), float64(6*k))
	}
	return w
}

// record cuts what was watched into a window and its slices. Series that were not
// there at first are born; a seventh of the families restarted, another was born.
func (w *watch) record(name string) recording {
	r := recording{name: name, window: w.stretch()}
	sorted(r.window.Gains)
	for k := range len(w.at) - 1 {
		part := watch{w.bodies[k : k+2], w.at[k : k+2]}
		s := part.stretch()
		sorted(s.Gains)
		r.slices = append(r.slices, s)
		r.window.SliceSeconds = append(r.window.SliceSeconds, s.Seconds)
	}
	r.window.EndNS = 1_800_000_060e9
	for i := range r.window.Gains {
		r.enrich(&r.window.Gains[i])
	}
	return r
}

func (r *recording) enrich(g *catalog.Gain) {
	if g.Type == metric.Gauge {
		g.Above = []float64{float64(len(g.Labels.String())%10) / 10}
		return
	}
	g.Slices = make([]float64, len(r.slices))
	for k, s := range r.slices {
		i, ok := slices.BinarySearchFunc(s.Gains, *g, order)
		if ok {
			g.Slices[k] = s.Gains[i].Total + s.Gains[i].Count
		}
	}
	h := fnv.New32a()
	fmt.Fprint(h, g.Family)
	switch h.Sum32() % 7 {
	case 0:
		g.Resets = 1
	case 1:
		g.Born = true
	}
}

func order(a, b catalog.Gain) int {
	return cmp.Or(strings.Compare(a.Family, b.Family), a.Labels.Compare(b.Labels))
}

func sorted(gains []catalog.Gain) { slices.SortFunc(gains, order) }

// statistics are those of Triton's extension, from the answers themselves.
func statistics(t *testing.T) recording {
	w := between10(stated(t, "idle"), stated(t, "load"))
	r := w.record("triton-stats-load")
	for _, s := range append(r.slices, r.window) {
		for i := range s.Gains {
			g := &s.Gains[i]
			g.Family += "_total" // as its source names them, which exposes no text
			g.Exact, g.HasExact = uint64(g.Total), true
		}
	}
	return r
}

func stated(t *testing.T, of string) body {
	type stat struct{ Count, NS json.Number }
	var page struct {
		ModelStats []struct {
			Name, Version  string
			InferenceCount json.Number     `json:"inference_count"`
			ExecutionCount json.Number     `json:"execution_count"`
			InferenceStats map[string]stat `json:"inference_stats"`
			BatchStats     []struct {
				Size  json.Number `json:"batch_size"`
				Infer stat        `json:"compute_infer"`
			} `json:"batch_stats"`
		} `json:"model_stats"`
	}
	if err := json.Unmarshal(testkit.Data(t, "bodies/triton-stats-"+of+".json"), &page); err != nil {
		t.Fatal(err)
	}
	b := body{map[string]metric.Type{}, map[string]sample{}}
	add := func(family string, n json.Number, labels map[string]string) {
		v, _ := n.Float64()
		b.types[family] = metric.Counter
		b.add(family, labels, v)
	}
	for _, m := range page.ModelStats {
		add("triton_stats_inferences_total", m.InferenceCount, map[string]string{"model": m.Name, "version": m.Version})
		add("triton_stats_executions_total", m.ExecutionCount, map[string]string{"model": m.Name, "version": m.Version})
		for name, s := range m.InferenceStats {
			l := map[string]string{"model": m.Name, "version": m.Version, "stat": name}
			add("triton_stats_requests_total", s.Count, l)
			add("triton_stats_request_duration_nanoseconds_total", s.NS, maps.Clone(l))
		}
		for _, s := range m.BatchStats {
			l := map[string]string{"model": m.Name, "version": m.Version, "stat": "compute_infer", "batch_size": s.Size.String()}
			add("triton_stats_batch_executions_total", s.Infer.Count, l)
			add("triton_stats_batch_duration_nanoseconds_total", s.Infer.NS, maps.Clone(l))
		}
	}
	return b
}
