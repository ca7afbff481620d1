package simulate_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

type tritonDuration struct{ Count, NS int64 }

// TestTritonStatistics holds the statistics extension against the counters and
// against its own invariants.
func TestTritonStatistics(t *testing.T) {
	c := newClock()
	s := start(t, c, "triton", simulate.Options{Seed: 5, Rate: 30, AbortShare: 0.05, ErrorShare: 0.05})
	c.add(50 * time.Second)
	f := scrape(t, s)
	var got struct {
		Stats []struct {
			Name, Version  string
			LastInference  int64                     `json:"last_inference"`
			InferenceCount int64                     `json:"inference_count"`
			ExecutionCount int64                     `json:"execution_count"`
			Inference      map[string]tritonDuration `json:"inference_stats"`
			Batches        []struct {
				Size  int64          `json:"batch_size"`
				Infer tritonDuration `json:"compute_infer"`
			} `json:"batch_stats"`
		} `json:"model_stats"`
	}
	if err := json.Unmarshal(get(s, "GET", "/v2/models/stats").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Stats) != 4 {
		t.Fatalf("%d models, want 4", len(got.Stats))
	}
	for _, m := range got.Stats {
		value := func(name string) float64 { return f.value("nv_inference_"+name, "model="+m.Name) }
		near(t, m.Name+" success", float64(m.Inference["success"].Count), value("request_success"))
		near(t, m.Name+" fail", float64(m.Inference["fail"].Count), value("request_failure"))
		near(t, m.Name+" inferences", float64(m.InferenceCount), value("count"))
		near(t, m.Name+" executions", float64(m.ExecutionCount), value("exec_count"))
		for name, stat := range map[string]string{"request": "success", "queue": "queue", "compute_infer": "compute_infer"} {
			// The counters cut the rest of a microsecond off each request.
			d := m.Inference[stat]
			if lost := float64(d.NS)/1e3 - value(name+"_duration_us"); lost < 0 || lost > float64(d.Count) {
				t.Errorf("%s %s: %d ns, %v us", m.Name, name, d.NS, value(name+"_duration_us"))
			}
		}
		if in := m.Inference; in["queue"].Count != in["success"].Count ||
			in["compute_infer"].Count != in["success"].Count-in["cache_hit"].Count {
			t.Errorf("%s: counts %+v", m.Name, in)
		}
		var items, executions int64
		for _, b := range m.Batches {
			items += b.Size * b.Infer.Count
			executions += b.Infer.Count
		}
		if items != m.InferenceCount || executions != m.ExecutionCount {
			t.Errorf("%s: batches hold %d inferences in %d executions, want %d in %d", m.Name, items, executions,
				m.InferenceCount, m.ExecutionCount)
		}
		if at := time.UnixMilli(m.LastInference); at.After(c.now) || at.Before(c.now.Add(-time.Minute)) {
			t.Errorf("%s: last inference at %v", m.Name, at)
		}
	}
	one := get(s, "GET", "/v2/models/encoder/versions/1/stats")
	if err := json.Unmarshal(one.Body.Bytes(), &got); err != nil || one.Code != 200 || len(got.Stats) != 1 {
		t.Errorf("one model: %d %s", one.Code, one.Body)
	}
	if w := get(s, "GET", "/v2/models/none/stats"); w.Code != 400 {
		t.Errorf("no model: %d", w.Code)
	}
}
