package triton_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/internal/sourcetest"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/triton"
)

// What the source hands on is what package metric promises, over both
// transports, for answers and for errors with text of the server in them.
func TestConforms(t *testing.T) {
	f := &fake{json: `{"model_stats":[{"name":"m\u001b[31m","version":"1","inference_count":18446744073709551615,` +
		`"last_inference":5000,
		"inference_stats":{"success":{"count":7,"ns":9},"fail":{"count":0,"ns":0}},"memory_usage":[{"type":"GPU","id":-1,` +
		`"byte_size":"9"}]}]}`,
		proto: []byte("\x0a\x10\x0a\x01m\x12\x011\x20\x05\x32\x06\x0a\x04\x08\x02\x10\x03")}
	h, g := f.start(t)
	for _, address := range []string{h, g} {
		s, err := triton.New(address, triton.Options{Header: map[string][]string{"X-Key": {"hunter2"}}})
		if err != nil {
			t.Fatal(err)
		}
		r := sourcetest.New(t, sourcetest.Limits{Slots: 1000, Secrets: []string{"hunter2"}})
		target := r.Poll(s, 3)
		if len(r.Dict(target).Slots) == 0 || r.Instants(target)[2].Outcome != metric.OK ||
			r.Instants(target)[3].Outcome != metric.Cancelled {
			t.Errorf("%s: %d slots, polls %+v", address, len(r.Dict(target).Slots), r.Instants(target))
		}
		if v, ok := r.Value(target, "triton_stats_inferences_total", metric.Counter, `{model="m",version="1"}`,
			metric.RoleValue, 0); address == g && (!ok || v != 5) {
			t.Errorf("inferences over gRPC: %v (%v)", v, ok)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	f.mu.Lock()
	f.status, f.said = 503, "hunter2 \x1b[31m is no server"
	f.mu.Unlock()
	s, err := triton.New(h, triton.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := sourcetest.New(t, sourcetest.Limits{})
	if target := r.Poll(s, 2); r.Instants(target)[0].Outcome.Stored() {
		t.Errorf("polls %+v", r.Instants(target))
	}
}
