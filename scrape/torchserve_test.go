package scrape_test

import (
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

func decodeText(t *testing.T, d *scrape.Decoder, text string) *metric.Snapshot {
	t.Helper()
	s := &metric.Snapshot{}
	d.Decode(s, scrape.Body{Bytes: []byte(text), ContentType: "text/plain; version=0.0.4"})
	return s
}

// The uuid of a TorchServe process is no label of its counters: after a restart
// the series goes on. That of a GPU is one.
func TestTorchServeUUID(t *testing.T) {
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const head = "# TYPE ts_inference_requests_total counter\nts_inference_requests_total{uuid=\""
	s := decodeText(t, d, head+"a\",model_name=\"m\",model_version=\"default\",} 7\nnv_gpu_utilization{uuid=\"GPU-1\"} "+
		"1\n")
	if got := s.DictDelta.Series[0].Labels.String(); got != `{model_name="m",model_version="default"}` {
		t.Errorf("labels %s", got)
	}
	if got := s.DictDelta.Series[1].Labels.String(); got != `{uuid="GPU-1"}` {
		t.Errorf("labels %s", got)
	}
	s = decodeText(t, d, head+"b\",model_name=\"m\",model_version=\"default\",} 2\nnv_gpu_utilization{uuid=\"GPU-1\"} 1\n")
	if !s.DictDelta.Empty() || !slices.Equal(s.Delta.Slots, []uint32{0}) || s.Delta.Float(0) != 2 {
		t.Errorf("after a restart: growth %+v, frame %+v", s.DictDelta, s.Delta)
	}
}

// T10: an empty body is an answer, with a hint.
func TestTorchServeLogMode(t *testing.T) {
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := decodeText(t, d, "")
	if s.Outcome != metric.OK || s.Lines != 0 || len(s.Warnings) != 1 || s.Warnings[0].Code != "empty_body" {
		t.Errorf("got %v, %d lines, %+v", s.Outcome, s.Lines, s.Warnings)
	}
}

// T6: recorded bodies of TorchServe 0.12.0.
func TestTorchServeBodies(t *testing.T) {
	check := func(name string, lines, families int, want map[string]float64) {
		t.Helper()
		text := testkit.Data(t, "fixtures/torchserve/"+name)
		d, err := scrape.NewDecoder(scrape.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := decodeText(t, d, string(text))
		if s.Outcome != metric.OK || s.Lines != lines || len(s.DictDelta.Families) != families {
			t.Errorf("%s: got %v, %d lines, %d families", name, s.Outcome, s.Lines, len(s.DictDelta.Families))
		}
		for i, slot := range s.Delta.Slots {
			sl := s.DictDelta.Slots[slot]
			key := s.DictDelta.Families[s.DictDelta.Series[sl.Series].Family].Name + " " + sl.Role.String()
			if v, ok := want[key]; ok {
				if got := s.Delta.Float(i); got != v {
					t.Errorf("%s: %s is %v, want %v", name, key, got, v)
				}
				delete(want, key)
			}
		}
		if len(want) > 0 {
			t.Errorf("%s: not seen: %v", name, want)
		}
	}
	check("prometheus_mode_0.12.0.txt", 37, 25, map[string]float64{"EchoHist count": 4, "EchoHist sum": 1,
		"ts_inference_latency_microseconds value": 121967.01100000001})
	check("legacy_mode_0.12.0.txt", 3, 3, nil)
}
