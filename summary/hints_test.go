package summary_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// What a vLLM-Omni server does not show, and what only seems frozen, is said; of
// another server nothing.
func TestOmniHints(t *testing.T) {
	check := func(body string, every float64, want string) {
		t.Helper()
		f := newFake("http://a/metrics").Mark(0, metric.PhaseProfiling)
		for i := range 12 {
			f.Scrape(0, float64(i)*every, body)
		}
		f.Mark(12*every, metric.MarkEnd)
		var got []string
		for _, w := range build(t, summary.Options{}, f).Endpoints[0].Warnings {
			if w.Code == "flag_log_stats" || w.Code == "throttled" {
				got = append(got, w.Code+": "+w.Text)
			}
		}
		if want == "" && len(got) > 0 || want != "" && !slices.ContainsFunc(got,
			func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%q every %v s: %v, want %q", body, every, got, want)
		}
	}
	silent := "# TYPE vllm_omni:audio_rtf histogram\n# TYPE vllm_omni:requests_success counter\n# TYPE " +
		"process_cpu_seconds counter\nprocess_cpu_seconds 1\n"
	check(silent, 1, "flag_log_stats: vLLM-Omni names 2 families and gives no numbers: start it with --log-stats")
	check(strings.ReplaceAll(silent, "vllm_omni:", "vllm:omni_"), 1, "--log-stats")
	images := silent + "vllm_omni:requests_success{finished_reason=\"stop\"} 4\n"
	check(images, 0.25, "")
	stages := images + "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{stage=\"0\"} 3\n"
	check(stages, 0.25, "throttled: vLLM-Omni renews scheduler numbers")
	check(stages, 0.25, "polled every 250ms")
	check(stages, 2, "")
	check("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n", 0.25, "")
	check("# TYPE other counter\nother 3\n", 0.25, "")
}
