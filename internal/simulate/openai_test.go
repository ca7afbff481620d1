package simulate_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// unloaded is a vLLM server that only real clients use.
func unloaded(t *testing.T) *simulate.Server {
	t.Helper()
	s, err := simulate.New("vllm", simulate.Options{Load: []simulate.LoadStep{{}}, Seed: 1, KeepTruth: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(s http.Handler, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

// TestCompletions: an answer takes the time that the engines take and has the
// tokens that the metrics show.
func TestCompletions(t *testing.T) {
	check := func(path, body string, chunks int, usage bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := unloaded(t)
			began := time.Now()
			w := ask(s, http.MethodPost, path, body)
			took := time.Since(began)
			r := s.Truth().Requests
			if w.Code != http.StatusOK || len(r) != 1 || r[0].OutputTokens != 5 || r[0].Reason != "length" {
				t.Fatalf("status %d, requests %+v, body %s", w.Code, r, w.Body)
			}
			if e2e := r[0].Last - r[0].Arrival; took < e2e || took > e2e+time.Millisecond {
				t.Errorf("the answer took %v, in the server %v", took, e2e)
			}
			if got := strings.Count(w.Body.String(), "data: {"); got != chunks {
				t.Errorf("%d chunks, want %d: %s", got, chunks, w.Body)
			}
			if got := strings.Contains(w.Body.String(), `"completion_tokens":5`); got != usage {
				t.Errorf("usage %v, want %v: %s", got, usage, w.Body)
			}
			if !strings.Contains(string(s.AppendBody(nil)),
				"vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"qwen3-8b\"} 1.0") {
				t.Error("the metrics do not show the request")
			}
		})
	}
	const message = `"messages":[{"role":"user","content":"how are you today?"}],"max_tokens":5,"ignore_eos":true`
	check("/v1/chat/completions", `{`+message+`}`, 0, true)
	check("/v1/chat/completions", `{"stream":true,`+message+`}`, 7, false)
	check("/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage":true},`+message+`}`, 8, true)
	check("/v1/completions", `{"prompt":"how are you today?","stream":true,"max_tokens":5,"ignore_eos":true}`, 6, false)
	check("/v1/completions", `{"prompt":"how are you today?","max_tokens":5,"ignore_eos":true}`, 0, true)
}

// TestCompletionsRefused: what is no request is refused, and other profiles have
// no such path.
func TestCompletionsRefused(t *testing.T) {
	s := unloaded(t)
	check := func(s http.Handler, method, path, body string, want int) {
		t.Helper()
		if w := ask(s, method, path, body); w.Code != want {
			t.Errorf("%s %s %q: status %d, want %d", method, path, body, w.Code, want)
		}
	}
	check(s, http.MethodPost, "/v1/chat/completions", "{", http.StatusBadRequest)
	check(s, http.MethodPost, "/v1/chat/completions", "{}", http.StatusBadRequest)
	check(s, http.MethodGet, "/v1/chat/completions", "", http.StatusMethodNotAllowed)
	check(s, http.MethodGet, "/v1/models", "", http.StatusOK)
	check(s, http.MethodGet, "/v1/other", "", http.StatusNotFound)
	dcgm, err := simulate.New("dcgm", simulate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(dcgm, http.MethodGet, "/v1/models", "", http.StatusNotFound)
}

// TestClients: every request of the load generator arrives once; answers differ.
func TestClients(t *testing.T) {
	s := unloaded(t)
	srv := httptest.NewServer(s)
	defer srv.Close()
	r, err := simulate.Clients{URL: srv.URL, Rate: 200, For: 200 * time.Millisecond, MaxTokens: 4,
		Seed: 3}.Run(t.Context())
	truth := s.Truth()
	if err != nil || r.Sent == 0 || r.Done != r.Sent || r.Failed != 0 || r.FirstError != nil ||
		len(truth.Requests) != r.Sent {
		t.Errorf("%+v, %v, and %d requests in the server", r, err, len(truth.Requests))
	}
	srv.Close()
	r, err = simulate.Clients{URL: srv.URL, Rate: 1000, For: 10 * time.Millisecond}.Run(t.Context())
	if err != nil || r.Failed != r.Sent || r.Sent > 0 && r.FirstError == nil {
		t.Errorf("without a server: %+v, %v", r, err)
	}
	if _, err := (simulate.Clients{URL: "http://h\x00"}).Run(t.Context()); err == nil {
		t.Error("a URL that is none was taken")
	}
}

// TestClientLeaves: a request whose client has gone leaves the engine, and a
// restart cuts the others.
func TestClientLeaves(t *testing.T) {
	s := unloaded(t)
	srv := httptest.NewServer(s)
	defer srv.Close()
	body := `{"prompt":"how are you today?","stream":true,"max_tokens":4000,"ignore_eos":true}`
	resp, err := srv.Client().Post(srv.URL+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadFull(resp.Body, make([]byte, 300))
	_ = resp.Body.Close()
	for len(s.Truth().Requests) == 0 {
		<-time.After(time.Millisecond)
	}
	if r := s.Truth().Requests[0]; r.Reason != "abort" || r.OutputTokens >= 4000 {
		t.Errorf("request %+v", r)
	}
	resp, err = srv.Client().Post(srv.URL+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	s.Restart()
	if all, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("the answer of a process that ended came to its end: %d bytes", len(all))
	}
	_ = resp.Body.Close()
	var v any
	if w := ask(s, http.MethodGet, "/v1/models", ""); json.Unmarshal(w.Body.Bytes(), &v) != nil {
		t.Errorf("models %s", w.Body)
	}
}
