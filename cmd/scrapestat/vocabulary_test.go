package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/internal/testkit"
)

// TestOneVocabulary feeds every name that show has of recordings of real servers to check, compare --metric and show
// --metric: none may be unknown to them.
func TestOneVocabulary(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"vllm-bench-rate4", "classes-omni", "dynamo-late", "triton-steady", "llamacpp-late"} {
		recording := filepath.Join(testkit.Path(t, "runs"), name)
		var shown struct {
			Quantities, Derived []struct {
				Name      string
				Canonical *string
				Status    string
				Value     *float64
			}
			Latencies []struct {
				Canonical, Name string
				P99             *float64
			}
		}
		text, _ := answer(t, 0, "show", recording, "--derived", "--format", "json")
		if err := json.Unmarshal([]byte(text), &shown); err != nil {
			t.Fatal(err)
		}
		var plain, times []string // names of one number, and of distributions
		for _, q := range slices.Concat(shown.Quantities, shown.Derived) {
			if q.Status != "missing" && q.Value != nil {
				plain = append(plain, q.Name)
			}
		}
		for _, l := range shown.Latencies {
			if w, _, ok := headline.Parse(l.Canonical); ok && l.P99 != nil {
				times = append(times, w.Name+" p99", w.Name+"_p50", l.Canonical+" mean", l.Name+" p90")
			}
		}
		walkNames(t, recording, unique(plain), unique(times))
	}
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// walkNames asks check for all names at once, and the others for each word.
func walkNames(t *testing.T, recording string, plain, times []string) {
	t.Helper()
	args := []string{"check", recording, "--format", "json"}
	for _, n := range slices.Concat(plain, times) {
		limit := " >= 0"
		args = append(args, "--assert", n+limit)
	}
	var out, talk bytes.Buffer
	run(context.Background(), args, stdio{nil, &out, &talk})
	var got struct {
		Checks []struct {
			Name     string
			Outcomes []struct{ Reason string }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Checks) != len(plain)+len(times) {
		t.Fatalf("%s: %d answers for %d names, %v\n%s", recording, len(got.Checks), len(plain)+len(times), err, talk.String())
	}
	for _, c := range got.Checks {
		for _, o := range c.Outcomes {
			if strings.Contains(o.Reason, "the run has no") || strings.Contains(o.Reason, "no server of the run") {
				t.Errorf("%s: %s is printed and not known: %s", recording, c.Name, o.Reason)
			}
		}
	}
	var words []string
	for _, n := range slices.Concat(plain, times) {
		if w, stat, ok := headline.Parse(n); ok && stat != "" {
			words = append(words, "^"+w.Name+"_"+stat+"$")
		} else if ok {
			words = append(words, "^"+w.Name+"$")
		} else {
			words = append(words, "^"+strings.Fields(n)[0]+"$")
		}
	}
	rows := []string{"query", recording, "--every", "1h"} // a share of slices needs them
	for _, n := range slices.Concat(plain, times) {
		rows = append(rows, "-m", n)
	}
	answer(t, 0, rows...)
	export := []string{"export", recording, "--formats", "stats", "-o", t.TempDir()}
	answer(t, 0, export...)
	pattern := words[len(words)-1]
	answer(t, 0, "show", recording, "--metric", pattern)
	text, _ := answer(t, 0, "compare", recording, recording, "--metric", pattern, "--all", "--format", "json")
	if !strings.Contains(text, `"family"`) {
		t.Errorf("compare --metric %s has no row", pattern)
	}
}

// answer runs a command and returns what it prints.
func answer(t *testing.T, code int, args ...string) (out, talk string) {
	t.Helper()
	var o, e bytes.Buffer
	if got := run(context.Background(), args, stdio{nil, &o, &e}); got != code {
		t.Errorf("%s: exit code %d, want %d\n%.400s%.400s", strings.Join(args, " "), got, code, o.String(), e.String())
	}
	return o.String(), e.String()
}

// TestNearMisses: a misspelt name ends with the right one, and a time without a unit with the units.
func TestNearMisses(t *testing.T) {
	t.Parallel()
	vllm := filepath.Join(testkit.Path(t, "runs"), "vllm-bench-rate4")
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{2, "450ms or 450s", []string{"check", vllm, "--assert", "ttft p99 < 450"}},
		{2, "450ms or 450s", []string{"check", vllm, "--assert", "requests:ttft p99 < 450"}},
		{2, "450ms or 450s", []string{"sweep", vllm, "--slo", "ttft p99 <= 450"}},
		{2, "did you mean ttft_p99", []string{"sweep", vllm, "--slo", "ttff p99 <= 450ms"}},
		{2, "which statistic of ttft? known: mean, pNN", []string{"check", vllm, "--assert", "ttft < 450ms"}},
		{4, "did you mean ttft", []string{"check", vllm, "--assert", "ttff p99 < 450ms"}},
		{4, "did you mean ttft p99?", []string{"check", vllm, "--assert", "derived:ttft_p99 < 450ms"}},
		{4, "did you mean ttft", []string{"show", vllm, "--metric", "tttf"}},
		{4, "did you mean e2e", []string{"compare", vllm, vllm, "--metric", "e2ee"}},
		{2, "did you mean model_name", []string{"show", vllm, "--by", "model_nam"}},
		{2, "nothing in the run has this label", []string{"compare", vllm, vllm, "--by", "zone"}},
		{2, "nothing in the run has this label", []string{"export", vllm, "--by", "zone", "--formats", "json", "-o", "-"}},
	} {
		if out, talk := answer(t, c.code, c.args...); !strings.Contains(out+talk, c.want) {
			t.Errorf("%s: no %q in\n%.400s%.400s", strings.Join(c.args, " "), c.want, out, talk)
		}
	}
}

// TestWordsAreShown: check judges a word by the number that show prints, of all replicas together.
func TestWordsAreShown(t *testing.T) {
	t.Parallel()
	vllm := filepath.Join(testkit.Path(t, "runs"), "vllm-bench-rate4")
	text, _ := answer(t, 0, "show", vllm, "--format", "json")
	var shown struct {
		Latencies []struct {
			Canonical string
			P99, Avg  float64
		}
	}
	if err := json.Unmarshal([]byte(text), &shown); err != nil || len(shown.Latencies) < 4 {
		t.Fatalf("%d latencies, %v", len(shown.Latencies), err)
	}
	args := []string{"check", vllm, "--format", "json"}
	var want []float64
	for _, l := range shown.Latencies[:4] {
		args = append(args, "--assert", l.Canonical+" p99 > 0", "--assert", l.Canonical+"_mean > 0")
		want = append(want, l.P99, l.Avg)
	}
	out, _ := answer(t, 0, args...)
	var got struct {
		Checks []struct{ Outcomes []struct{ Value float64 } }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Checks) != len(want) {
		t.Fatalf("%d answers, %v", len(got.Checks), err)
	}
	for i, c := range got.Checks {
		if len(c.Outcomes) != 1 || c.Outcomes[0].Value != want[i] {
			t.Errorf("%s is %+v, show has %v", args[4+2*i], c.Outcomes, want[i])
		}
	}
}
