package summary

import (
	"fmt"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// omniThrottle is how often vLLM-Omni renews what the scheduler of a stage tells: running and waiting requests,
// the use of the KV cache, the counters of the prefix cache. Polled more often they seem to stand still.
const omniThrottle = time.Second

// hintOmni warns of what a vLLM-Omni server does not show, and what only looks
// strange: a server without --log-stats answers with names and no numbers.
func (r *Run) hintOmni() {
	type shown struct{ pipeline, engines bool }
	seen := make([]shown, len(r.Endpoints))
	for i := range r.Metrics {
		m := &r.Metrics[i]
		pipeline := isOmni(m.Name)
		if !pipeline && !isVLLM(m.Name) {
			continue
		}
		for j := range m.Series {
			at := &seen[m.Series[j].Endpoint]
			at.pipeline, at.engines = at.pipeline || pipeline, at.engines || !pipeline
		}
	}
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		declared := 0
		for _, name := range e.Declared {
			if isOmni(name) {
				declared++
			}
		}
		warn := func(code, text string) { e.Warnings = append(e.Warnings, metric.Warning{Code: code, Text: text}) }
		switch every := e.InWindow.interval(); {
		case declared == 0 && !seen[i].pipeline:
		case !seen[i].pipeline && !seen[i].engines:
			warn("flag_log_stats", fmt.Sprintf("vLLM-Omni names %d families and gives no numbers: start it with "+
				"--log-stats", declared))
		case seen[i].engines && every > 0 && every < omniThrottle*9/10:
			warn("throttled", fmt.Sprintf("vLLM-Omni renews scheduler numbers (running, waiting, KV cache, prefix cache) "+
				"once a second at most: "+
				"polled every %v they stand still in between, and only seem frozen", every.Round(time.Millisecond)))
		}
	}
}

func isOmni(family string) bool {
	return strings.HasPrefix(family, "vllm_omni:") || strings.HasPrefix(family, "vllm:omni_")
}

func isVLLM(family string) bool { return strings.HasPrefix(family, "vllm:") && !isOmni(family) }

// interval is the mean time between fetches, 0 when it is not known.
func (f *FetchStats) interval() time.Duration {
	if f == nil || f.Total < 2 {
		return 0
	}
	return time.Duration(f.LastNS-f.FirstNS) / time.Duration(f.Total-1)
}
