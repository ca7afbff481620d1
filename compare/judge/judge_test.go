package judge_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/compare/judge"
)

const vectors = "../../testdata/vectors/history/"

func load(t *testing.T, file string, v any) {
	t.Helper()
	b, err := os.ReadFile(vectors + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b))
}

func TestBatchMeansVectors(t *testing.T) {
	var cases []struct {
		Num, Den []float64
		Expect   struct {
			Value float64
			Err   float64 `json:"se_log"`
			DF    float64
		}
	}
	load(t, "batchmeans.json", &cases)
	for i, c := range cases {
		got := judge.Ratio(c.Num, c.Den)
		if !near(got.Value, c.Expect.Value, 1e-8) || !near(got.Err, c.Expect.Err, 1e-8) || got.DF != c.Expect.DF {
			t.Errorf("case %d: got %+v, want %+v", i, got, c.Expect)
		}
	}
	if len(cases) < 3 {
		t.Errorf("only %d cases", len(cases))
	}
}

type expected struct {
	Base, Other, Change, Low, High, S, DF, P float64
	PHolm                                    float64 `json:"p_holm"`
	Verdict                                  judge.Verdict
	RunsNeeded                               *int `json:"runs_needed"`
	Reason                                   string
}

func TestJudgeVectors(t *testing.T) {
	var cases []struct {
		Name  string
		Alpha float64
		Noise map[string][2]float64
		Rows  map[string]struct {
			Base, Other   []float64
			Margin, Floor float64
			Better        string
		}
		Expect map[string]expected
	}
	load(t, "judge.json", &cases)
	rows := 0
	for _, c := range cases {
		var names []string
		var list []judge.Row
		for name, r := range c.Rows {
			names = append(names, name)
			n := c.Noise[name]
			list = append(list, judge.Row{Base: r.Base, Other: r.Other, Margin: r.Margin, Floor: r.Floor,
				Better:  map[string]judge.Direction{"lower": judge.Lower, "higher": judge.Higher}[r.Better],
				History: judge.Noise{S: n[0], DF: n[1]},
				// No noise within the runs: that of the history alone decides, as in the reference.
				Within: [2]judge.Estimate{{Value: r.Base[0], DF: 1e9}, {Value: r.Other[0], DF: 1e9}}})
		}
		for i, got := range judge.Judge(list, c.Alpha) {
			rows++
			check(t, c.Name+" "+names[i], got, c.Expect[names[i]])
		}
	}
	if rows < 50 {
		t.Errorf("only %d rows", rows)
	}
}

func check(t *testing.T, name string, got judge.Result, want expected) {
	t.Helper()
	if want.Reason != "" { // the reference has no evidence within runs
		return
	}
	needed := 0
	if want.RunsNeeded != nil {
		needed = *want.RunsNeeded
	}
	if got.Verdict != want.Verdict || got.RunsNeeded != needed || got.DF != want.DF {
		t.Errorf("%s: %s, %d runs, df %v; want %s, %d, %v", name, got.Verdict, got.RunsNeeded, got.DF, want.Verdict,
			needed, want.DF)
	}
	for _, n := range []struct{ got, want, tolerance float64 }{{got.Base, want.Base, 1e-8}, {got.Other, want.Other, 1e-8},
		{got.Change, want.Change, 1e-8}, {got.Low, want.Low, 1e-8}, {got.High, want.High, 1e-8}, {got.S, want.S, 1e-8},
		{got.P, want.P, 1e-6}, {got.PHolm, want.PHolm, 1e-6}} {
		if !near(n.got, n.want, n.tolerance) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
			return
		}
	}
}

// TestSingleRuns: what single runs may be called, and by what.
func TestSingleRuns(t *testing.T) {
	within := func(a, b, err float64) [2]judge.Estimate {
		return [2]judge.Estimate{{Value: a, Err: err, DF: 9}, {Value: b, Err: err, DF: 9}}
	}
	row := func(a, b, err float64, h judge.Noise) judge.Row {
		return judge.Row{Base: []float64{a}, Other: []float64{b}, Margin: 0.03, Better: judge.Lower,
			Within: within(a, b, err), History: h}
	}
	for name, c := range map[string]struct {
		row      judge.Row
		verdict  judge.Verdict
		evidence judge.Evidence
	}{
		"moved":                    {row(1, 1.2, 0.01, judge.Noise{}), judge.MovedUp, judge.WithinRun},
		"down":                     {row(1.2, 1, 0.01, judge.Noise{}), judge.MovedDown, judge.WithinRun},
		"within noise":             {row(1, 1.2, 0.1, judge.Noise{}), judge.WithinNoise, judge.WithinRun},
		"same":                     {row(1, 1.001, 0.005, judge.Noise{}), judge.Same, judge.WithinRun},
		"history agrees":           {row(1, 1.2, 0.01, judge.Noise{S: 0.02, DF: 20}), judge.Worse, judge.History},
		"history varies more":      {row(1, 1.2, 0.01, judge.Noise{S: 0.2, DF: 20}), judge.Unclear, judge.History},
		"history is too short":     {row(1, 1.2, 0.01, judge.Noise{S: 0.001, DF: 4}), judge.MovedUp, judge.WithinRun},
		"history sure, run is not": {row(1, 1.2, 0.1, judge.Noise{S: 0.001, DF: 20}), judge.Unclear, judge.History},
		"under the floor": {judge.Row{Base: []float64{17e-6}, Other: []float64{21e-6}, Margin: 0.05, Floor: 1e-3,
			Within: within(17e-6, 21e-6, 0.01)}, judge.Same, judge.WithinRun},
		"equal":     {row(1, 1, 0.5, judge.Noise{}), judge.Same, judge.WithinRun},
		"no slices": {judge.Row{Base: []float64{1}, Other: []float64{2}}, judge.NotJudged, judge.None},
		"a zero":    {row(0, 1, 0.1, judge.Noise{}), judge.NotJudged, judge.None},
		"infinite":  {row(1, math.Inf(1), 0.1, judge.Noise{}), judge.NotJudged, judge.None},
		"a reason": {judge.Row{Base: []float64{1}, Other: []float64{2}, Reason: "refused"},
			judge.NotJudged, judge.None},
		"one and two runs":          {judge.Row{Base: []float64{1}, Other: []float64{2, 2.1}}, judge.NotJudged, judge.None},
		"errors from none":          {share(0, 9, 1000), judge.MovedUp, judge.WithinRun},
		"errors from none, by luck": {share(0, 2, 1000), judge.WithinNoise, judge.WithinRun},
		"no errors":                 {share(0, 0, 1000), judge.Same, judge.WithinRun},
	} {
		got := judge.Judge([]judge.Row{c.row}, 0.05)[0]
		if got.Verdict != c.verdict || got.Evidence != c.evidence || got.Verdict == judge.NotJudged && got.Reason == "" {
			t.Errorf("%s: %+v, want %s by %s", name, got, c.verdict, c.evidence)
		}
	}
}

// share is a row of errors among n requests in one run a side.
func share(a, b, n float64) judge.Row {
	return judge.Row{Base: []float64{a / n}, Other: []float64{b / n}, Share: true, Margin: 0.001, Better: judge.Lower,
		Events: [2]float64{a, b}, Trials: [2]float64{n, n}}
}

// TestShareOfRepeats: errors of several runs a side are judged by their difference.
func TestShareOfRepeats(t *testing.T) {
	r := judge.Row{Base: []float64{0.010, 0.011, 0.009}, Other: []float64{0.031, 0.029, 0.030}, Share: true, Margin: 0.001,
		Better: judge.Lower}
	got := judge.Judge([]judge.Row{r}, 0.05)[0]
	if got.Verdict != judge.Worse || !near(got.Change, 0.02, 0.01) || !(got.Low > 0.015 && got.High < 0.025) {
		t.Errorf("1 %% to 3 %%: %+v", got)
	}
	r.Other = []float64{0.0104, 0.0106, 0.0095}
	if got := judge.Judge([]judge.Row{r}, 0.05)[0]; got.Verdict != judge.Unclear {
		t.Errorf("about equal: %+v", got)
	}
	r.Base, r.Other = []float64{0.0101, 0.0100, 0.0100}, []float64{0.0100, 0.0100, 0.0101}
	if got := judge.Judge([]judge.Row{r}, 0.05)[0]; got.Verdict != judge.Same {
		t.Errorf("equal within a tenth of a point: %+v", got)
	}
}

// TestExact: errors on one side only are judged by Fisher's exact test, whose p is counted by hand here.
func TestExact(t *testing.T) {
	for _, c := range []struct{ a, n, b, m, want float64 }{{0, 5, 5, 5, 2.0 / 252}, {0, 4, 2, 4, 12.0 / 28}} {
		r := judge.Row{Base: []float64{c.a / c.n}, Other: []float64{c.b / c.m}, Share: true,
			Events: [2]float64{c.a, c.b}, Trials: [2]float64{c.n, c.m}}
		if got := judge.Judge([]judge.Row{r}, 0.05)[0]; !near(got.P, c.want, 1e-9) {
			t.Errorf("%v of %v against %v of %v: p %v, want %v", c.a, c.n, c.b, c.m, got.P, c.want)
		}
	}
}

// TestMirror: swapped sides mirror every result to the last digit.
func TestMirror(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0.1, 10), 1, 5)
		var rows, swapped []judge.Row
		for range rapid.IntRange(1, 6).Draw(t, "rows") {
			r := judge.Row{Base: values.Draw(t, "base"), Other: values.Draw(t, "other"), Margin: 0.03, Better: judge.Lower,
				Floor:   rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "floor"),
				History: judge.Noise{S: 0.02, DF: float64(rapid.IntRange(0, 9).Draw(t, "df"))}}
			r.Within = [2]judge.Estimate{{Value: r.Base[0], Err: 0.03, DF: 7}, {Value: r.Other[0], Err: 0.02, DF: 9}}
			rows = append(rows, r)
			r.Base, r.Other, r.Within[0], r.Within[1] = r.Other, r.Base, r.Within[1], r.Within[0]
			swapped = append(swapped, r)
		}
		mirror := map[judge.Verdict]judge.Verdict{judge.Worse: judge.Better, judge.Better: judge.Worse,
			judge.MovedUp: judge.MovedDown, judge.MovedDown: judge.MovedUp}
		a, b := judge.Judge(rows, 0.05), judge.Judge(swapped, 0.05)
		for i := range a {
			want, ok := mirror[a[i].Verdict]
			if !ok {
				want = a[i].Verdict
			}
			pa, pb := a[i].PHolm, b[i].PHolm
			if b[i].Verdict != want || pa != pb && !(math.IsNaN(pa) && math.IsNaN(pb)) || a[i].Base != b[i].Other {
				t.Fatalf("row %d: %+v swapped %+v", i, a[i], b[i])
			}
			if l, h := math.Log1p(a[i].Low), math.Log1p(b[i].High); a[i].Verdict != judge.NotJudged &&
				math.Abs(l+h) > 1e-6*(1+math.Abs(l)) && l > -20 {
				t.Fatalf("row %d: low %v is not the mirror of high %v", i, a[i].Low, b[i].High)
			}
		}
	})
}

// TestQuantileNoise: the noise of a percentile by slices is that which many runs show.
func TestQuantileNoise(t *testing.T) {
	bounds := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, math.Inf(1)}
	next := uint64(1)
	uniform := func() float64 {
		next = next*6364136223846793005 + 1442695040888963407
		return float64(next>>11) / (1 << 53)
	}
	var medians, errs []float64
	for range 200 {
		slicesOf := make([]judge.Histogram, 60)
		all := judge.Histogram{Bounds: bounds, Cum: make([]float64, len(bounds))}
		for i := range slicesOf {
			slicesOf[i] = judge.Histogram{Bounds: bounds, Cum: make([]float64, len(bounds))}
			for range 20 {
				v := 10 * uniform()
				for k, b := range bounds {
					if v <= b {
						slicesOf[i].Cum[k]++
						all.Cum[k]++
					}
				}
			}
		}
		k := slices.IndexFunc(all.Cum, func(n float64) bool { return n >= 600 })
		v := bounds[k] - (all.Cum[k]-600)/(all.Cum[k]-all.Cum[k-1])
		medians = append(medians, math.Log(v))
		errs = append(errs, judge.Quantile(v, 0.5, slicesOf).Err)
	}
	mean, ss := 0.0, 0.0
	for _, m := range medians {
		mean += m / 200
	}
	for _, m := range medians {
		ss += (m - mean) * (m - mean)
	}
	slices.Sort(errs)
	if sd := math.Sqrt(ss / 199); !near(errs[100], sd, 0.2) {
		t.Errorf("the noise within a run is %v, that of 200 runs %v", errs[100], sd)
	}
	if e := judge.Quantile(5, 0.5, make([]judge.Histogram, 11)); e.DF != 0 {
		t.Errorf("eleven slices: %+v", e)
	}
}
