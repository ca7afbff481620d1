package simulate_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

type tritonEntry struct {
	Name, Version  string
	InferenceCount uint64                                `json:"inference_count"`
	ExecutionCount uint64                                `json:"execution_count"`
	LastInference  int64                                 `json:"last_inference"`
	InferenceStats map[string]struct{ Count, NS uint64 } `json:"inference_stats"`
	BatchStats     []struct {
		BatchSize    uint64                     `json:"batch_size"`
		ComputeInfer struct{ Count, NS uint64 } `json:"compute_infer"`
	} `json:"batch_stats"`
}

// tritonAt returns what the server answers to a path at an instant after start.
func tritonAt(t *testing.T, o simulate.Options, path string, steps ...time.Duration) (int, string) {
	t.Helper()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	start := now
	o.Now = func() time.Time { return now }
	s, err := simulate.New("triton", o)
	if err != nil {
		t.Fatal(err)
	}
	var w *httptest.ResponseRecorder
	for _, at := range steps {
		now = start.Add(at)
		w = httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	}
	return w.Code, w.Body.String()
}

func tritonEntries(t *testing.T, body string) map[string]tritonEntry {
	t.Helper()
	var doc struct {
		ModelStats []tritonEntry `json:"model_stats"`
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	out := map[string]tritonEntry{}
	for _, e := range doc.ModelStats {
		out[e.Name] = e
	}
	return out
}

// The identities of the real server hold, whatever the seed.
func TestTritonIdentities(t *testing.T) {
	for seed := range uint64(5) {
		o := simulate.Options{Rate: 60, Seed: seed}
		_, body := tritonAt(t, o, "/v2/models/stats", 90*time.Second)
		all := tritonEntries(t, body)
		if len(all) != 5 {
			t.Fatalf("models: %v", all)
		}
		for name, e := range all {
			s := e.InferenceStats
			computed := s["success"].Count - s["cache_hit"].Count
			if s["success"].Count == 0 || s["queue"].Count != s["success"].Count || s["compute_infer"].Count != computed ||
				e.LastInference == 0 {
				t.Errorf("seed %d, %s: %+v", seed, name, s)
			}
			var inferences, executions uint64
			for _, b := range e.BatchStats {
				inferences += b.BatchSize * b.ComputeInfer.Count
				executions += b.ComputeInfer.Count
			}
			if inferences != e.InferenceCount || executions != e.ExecutionCount {
				t.Errorf("seed %d, %s: batches give %d and %d, counters %d and %d", seed, name, inferences, executions,
					e.InferenceCount, e.ExecutionCount)
			}
		}
		infer := func(model string) uint64 { return all[model].InferenceStats["compute_infer"].NS }
		if infer("text_pipeline") > infer("tokenizer")+infer("encoder") {
			t.Errorf("seed %d: the ensemble computed longer than its parts", seed)
		}
		if _, again := tritonAt(t, o, "/v2/models/stats", time.Second, 30*time.Second, 90*time.Second); again != body {
			t.Errorf("seed %d: looking more often changes the answer", seed)
		}
	}
}

// A poll right after the end of a request misses its time; later it is there.
func TestTritonTornReads(t *testing.T) {
	torn := 0
	for ms := range 400 {
		_, body := tritonAt(t, simulate.Options{Rate: 60, Seed: 3, Tear: 2 * time.Millisecond},
			"/v2/models/tokenizer/stats", 5*time.Second+time.Duration(ms)*time.Millisecond)
		s := tritonEntries(t, body)["tokenizer"].InferenceStats
		if s["queue"].Count > s["success"].Count {
			t.Fatalf("queue is ahead: %+v", s)
		}
		if s["queue"].Count < s["success"].Count {
			torn++
		}
	}
	if torn == 0 || torn == 400 {
		t.Errorf("%d of 400 polls are torn", torn)
	}
}

func TestTritonAnswers(t *testing.T) {
	check := func(path string, status int, parts ...string) {
		t.Helper()
		code, body := tritonAt(t, simulate.Options{Rate: 20}, path, 10*time.Second)
		if code != status {
			t.Errorf("%s: status %d, want %d: %s", path, code, status, body)
		}
		for _, part := range parts {
			if !strings.Contains(body, part) {
				t.Errorf("%s: no %q in %s", path, part, body)
			}
		}
	}
	check("/v2/models/encoder/stats", 200, `"name":"encoder"`)
	check("/v2/models/encoder/versions/1/stats", 200, `"version":"1"`)
	check("/v2/models/x/stats", 400, `{"error":"requested model 'x' is not available"}`)
	check("/v2/models/encoder/versions/7/stats", 400,
		`{"error":"requested model version is not available for model 'encoder'"}`)
	check("/v2/models/encoder/versions/x/stats", 404, `{"error":"Not Found"}`)
	check("/v2/models/text_pipeline/config", 200, `"step":[{"model_name":"tokenizer"`)
	check("/v2/models/encoder/config", 200, `"name":"encoder"`)
	check("/v2/health/ready", 200)
	check("/v2/other", 404)
	check("/metrics", 200, "nv_inference_count")
}
