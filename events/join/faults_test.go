package join_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/events/join"
	"github.com/scrapestat/scrapestat/metric"
)

// TestNoRequestsFirst: a run without requests of clients is told so, and not that an anchor is missing.
func TestNoRequestsFirst(t *testing.T) {
	_, err := join.Join(t.Context(), &events.Session{}, server(), join.Options{})
	if !errors.Is(err, join.ErrNoRequests) || !strings.Contains(err.Error(), "the run has no requests of clients") {
		t.Error(err)
	}
}

// TestLogsAlone: requests that a server logs by name are joined without any family of a known server, and one that is
// logged at the first instant of the window counts.
func TestLogsAlone(t *testing.T) {
	run := server()
	run.Window.StartNS = epoch + 12*second // when the first of them was logged
	r, err := join.Join(t.Context(), session(), run, join.Options{Clocks: clocks, Recording: logged{}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Matched) != 1 || r.Matched[0].Requests != 1 || r.Engine != "" {
		t.Errorf("%+v", r.Matched)
	}
	near(t, "outside", r.Matched[0].Overhead, 0.1) // 1 s - 900 ms
	var text strings.Builder
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "by request, PredictionTime") {
		t.Error(err, text.String())
	}
}

// counted is a recording with a counter of requests.
type counted struct {
	logged
	polls [][2]int64 // second, count
}

func (c counted) Snapshots(context.Context, int) iter.Seq2[*metric.Snapshot, error] {
	return func(yield func(*metric.Snapshot, error) bool) {
		for i, p := range c.polls {
			s := &metric.Snapshot{SentNS: epoch + p[0]*second, Delta: metric.Delta{Full: true, Slots: []uint32{0},
				Bits: []uint64{uint64(p[1])}}}
			if i == 0 {
				s.DictDelta = metric.DictDelta{Families: []metric.Family{{Name: "vllm:request_success", Type: metric.Counter}},
					Series: []metric.Series{{Family: 0}}, Slots: []metric.SampleID{{Series: 0, Integer: true}}}
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

// TestAnchor: requests from 5 to 9.5, 11 to 12, 12 to 13.5, 15 to 17 and 19 to 25 s against polls of the counter, by
// hand; times that are off by more than a second stop the join and tell by how much.
func TestAnchor(t *testing.T) {
	vllm := server(histogram("vllm:time_to_first_token_seconds", 4, 0.8))
	do := func(by int64, polls ...[2]int64) (*join.Result, error) {
		s := session()
		for i := range s.Requests {
			q := &s.Requests[i]
			q.IssuedNS, q.FirstNS, q.CompleteNS = q.IssuedNS+by*second, q.FirstNS+by*second, q.CompleteNS+by*second
		}
		return join.Join(t.Context(), s, vllm, join.Options{Clocks: clocks, Recording: counted{polls: polls}})
	}
	polls := [][2]int64{{4, 100}, {10, 101}, {14, 103}, {30, 105}}
	r, err := do(0, polls...)
	if err != nil || r.Anchor == nil {
		t.Fatal(r, err)
	}
	// 3 counted at 14: the third was issued at 12, the fourth ended at 17. 1 at 10: the second ended at 12.
	near(t, "low", &r.Anchor.Low, -2)
	near(t, "high", &r.Anchor.High, 2)
	if _, err = do(69, polls...); !errors.Is(err, join.ErrShifted) || !strings.Contains(err.Error(),
		"67.0 to 71.0 s late, by the 4 polls of vllm's counter of requests; --shift -69s") {
		t.Error(err)
	}
	if _, err = do(-69, polls...); !errors.Is(err, join.ErrShifted) || !strings.Contains(err.Error(), "--shift 69s") {
		t.Error(err)
	}
	if r, err = do(69, [2]int64{4, 100}, [2]int64{30, 106}); err != nil || r.Anchor != nil {
		t.Errorf("a counter of other requests: %+v, %v", r, err)
	}
	if r, err = do(69, [2]int64{4, 100}, [2]int64{10, 3}, [2]int64{30, 105}); err != nil || r.Anchor != nil {
		t.Errorf("a counter that restarted: %+v, %v", r, err)
	}
}

// TestFiveColumns: without records the front end is the server's time to the first token less queue and prefill.
func TestFiveColumns(t *testing.T) {
	run := server(histogram("vllm:time_to_first_token_seconds", 4, 0.8),
		histogram("vllm:request_queue_time_seconds", 4, 0.4), histogram("vllm:request_prefill_time_seconds", 4, 0.3))
	r, err := join.Join(t.Context(), session(), run, join.Options{Clocks: clocks})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "mean" {
			if got := strings.Join(f, " "); got != "mean 250.000 ms 50.000 ms 25.000 ms 100.000 ms 75.000 ms" {
				t.Errorf("%s", got)
			}
			return
		}
	}
	t.Errorf("no means:\n%s", text.String())
}

// several are records of sources of several kinds.
type several []*records

func (s several) ServerSources(context.Context) (out []metric.ServerSource, err error) {
	for _, r := range s {
		out = append(out, r.source)
	}
	return out, nil
}

func (s several) ServerRequests(ctx context.Context) iter.Seq2[*metric.ServerRequest, error] {
	return func(yield func(*metric.ServerRequest, error) bool) {
		for _, r := range s {
			for q, err := range r.ServerRequests(ctx) {
				if !yield(q, err) {
					return
				}
			}
		}
	}
}

// TestArrival: TensorRT-LLM numbers its records by itself; one that arrived when an answer tells that its request did
// is of that client, to 1 ns, and the number of another is no id of a client. The record knows more than the answer.
func TestArrival(t *testing.T) {
	source := func(id int, kind string, list ...metric.ServerRequest) *records {
		for i := range list {
			list[i].Source = id
		}
		return &records{source: metric.ServerSource{ID: id, Kind: kind, ServerClock: metric.ServerClock{
			Clock: metric.ServerMonotonic, Resolution: 1000}}, list: list}
	}
	record := func(id string, arrival int64) metric.ServerRequest {
		q := metric.NewServerRequest()
		q.ID, q.ArrivalNS, q.FirstNS, q.FinishNS = id, arrival, arrival+50_000_000, arrival+900_000_000
		q.TTFT, q.E2E, q.Queue, q.Prefill = 50_000_000, 900_000_000, 20_000_000, 25_000_000
		return q
	}
	answer := metric.NewServerRequest()
	answer.ID, answer.ArrivalNS, answer.Queue = "body-a", 7_000_000_000, 20_000_000
	s := session()
	s.LastNS = epoch + 30*second
	s.Requests[1].ResponseID = "body-a"
	s.Requests[2].ID = "6" // no number of the server's
	r := joined(t, s, several{source(1, "trtllm-perf", record("6", 7_000_000_001), record("7", 9_000_000_000)),
		source(2, "trtllm-answer", answer)}, join.ClockOptions{Drift: 200e-6}).Requests
	if r.Joined != 1 || r.JoinedRecords != 1 || r.Superseded != 1 || r.WithoutClient != 1 || r.JoinedBy["arrival"] != 1 {
		t.Errorf("%+v %v", r.Coverage, r.JoinedBy)
	}
	near(t, "outside", r.TTFT.Outside, 0.05) // 100 ms of the client less 50
}
