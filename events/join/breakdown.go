package join

import (
	"math"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/events"
)

// Breakdown is where the time to the first token went, in seconds. Means are over the same requests, so that they add
// up: client = outside + front end + queue + prefill. No clocks are compared, as each part is of one clock.
type Breakdown struct {
	Requests int      `json:"requests"` // that both sides have all parts of
	Client   *float64 `json:"client_s"`
	Outside  *float64 `json:"outside_s"` // network, proxies, the client's event loop, both ways
	Front    *float64 `json:"front_s"`   // HTTP, tokenizer, detokenizer
	Queue    *float64 `json:"queue_s"`
	Prefill  *float64 `json:"prefill_s"`
	// NotStreamed are joined requests without a first token on one side.
	NotStreamed int `json:"not_streamed"`
}

// Outside is the distribution of what a time of the client has more than that of the server, in seconds.
type Outside struct {
	Requests int      `json:"requests"`
	Mean     *float64 `json:"mean_s"`
	Min      *float64 `json:"min_s"`
	P50      *float64 `json:"p50_s"`
	P99      *float64 `json:"p99_s"`
	Max      *float64 `json:"max_s"`
}

// EndToEnd is where the latency went, in seconds: client = outside + TTFT + decode + rest of the server.
type EndToEnd struct {
	Requests int      `json:"requests"`
	Client   *float64 `json:"client_s"`
	Outside  *float64 `json:"outside_s"`
	Server   *float64 `json:"server_s"`
	Decode   *float64 `json:"decode_s"` // nil unless all have it
	Rest     *float64 `json:"rest_s"`   // of the server's: neither first token nor decode
}

// Tokens are the tokens of answers as both sides count them, over the same requests.
type Tokens struct {
	Requests int   `json:"requests"`
	Client   int64 `json:"client"`
	Server   int64 `json:"server"`
	Differ   int   `json:"requests_that_differ"`
}

// Contradiction is a pair that cannot be: the server took longer than the client waited.
type Contradiction struct {
	ID      string  `json:"id"`
	What    string  `json:"what"` // ttft or e2e
	Outside float64 `json:"outside_s"`
}

// unknownNS stands for a time that is not known.
const unknownNS = math.MinInt64

// parts are those of one request, in nanoseconds.
type parts struct{ client, outside, front, queue, prefill int64 }

// ttft returns the parts of a request; outside is unknownNS where a side has no first token, the others where the
// server does not tell them.
func (m *matches) ttft(i int) parts {
	s, q := &m.of[i], &m.clients[i]
	p := parts{unknownNS, unknownNS, unknownNS, unknownNS, unknownNS}
	if s.parts == 0 || q.FirstNS == 0 || q.FirstNS < q.IssuedNS || s.ttft < 0 {
		return p
	}
	p.client = q.FirstNS - q.IssuedNS
	p.outside = p.client - s.ttft
	if s.queue >= 0 && s.prefill >= 0 {
		p.front, p.queue, p.prefill = s.ttft-s.queue-s.prefill, s.queue, s.prefill
	}
	return p
}

// e2e returns what the client waited and what of it was outside; unknownNS where a side has no end, or it failed.
func (m *matches) e2e(i int) (client, outside int64) {
	s, q := &m.of[i], &m.clients[i]
	if s.parts == 0 || s.e2e < 0 || q.Status != events.Succeeded || q.CompleteNS < q.IssuedNS {
		return unknownNS, unknownNS
	}
	return q.CompleteNS - q.IssuedNS, q.CompleteNS - q.IssuedNS - s.e2e
}

// slack is by how much two times of a source may contradict those of a client.
func (m *matches) slack(i int) int64 {
	return max(int64(m.sources[int(m.of[i].source)].Resolution), int64(time.Microsecond))
}

// contradicts reports whether the server took longer than the client waited.
func (m *matches) contradicts(i int) bool {
	_, end := m.e2e(i)
	first := m.ttft(i).outside
	slack := m.slack(i)
	return first != unknownNS && first < -slack || end != unknownNS && end < -slack
}

// total adds up times in seconds.
type total struct {
	n   int
	sum float64
}

func (t *total) add(ns int64) { t.n, t.sum = t.n+1, t.sum+float64(ns)/1e9 }

func (t *total) mean() *float64 { return quotient(t.sum, float64(t.n)) }

// breakdown fills in what needs no clock.
func (m *matches) breakdown(r *Requests) {
	var client, outside, front, queue, prefill total
	var firsts []float64
	for i := range m.of {
		if m.of[i].parts == 0 {
			continue
		}
		m.tokens(i, &r.Tokens)
		if m.contradicts(i) {
			m.contradiction(i, r)
			continue
		}
		p := m.ttft(i)
		if p.outside == unknownNS {
			r.TTFT.NotStreamed++
			continue
		}
		firsts = append(firsts, float64(p.outside)/1e9)
		if p.queue == unknownNS {
			continue
		}
		client.add(p.client)
		outside.add(p.outside)
		front.add(p.front)
		queue.add(p.queue)
		prefill.add(p.prefill)
	}
	r.TTFT.Requests = client.n
	r.TTFT.Client, r.TTFT.Outside, r.TTFT.Front = client.mean(), outside.mean(), front.mean()
	r.TTFT.Queue, r.TTFT.Prefill = queue.mean(), prefill.mean()
	r.OutsideTTFT = outsideOf(firsts)
	m.endToEnd(r)
}

// maxContradictions is how many are named.
const maxContradictions = 20

func (m *matches) contradiction(i int, r *Requests) {
	if r.Contradictory++; len(r.Contradictions) >= maxContradictions {
		return
	}
	c := Contradiction{ID: m.clients[i].ID, What: "ttft", Outside: float64(m.ttft(i).outside) / 1e9}
	if o := m.ttft(i).outside; o == unknownNS || o >= -m.slack(i) {
		_, end := m.e2e(i)
		c.What, c.Outside = "e2e", float64(end)/1e9
	}
	r.Contradictions = append(r.Contradictions, c)
}

func (m *matches) tokens(i int, t *Tokens) {
	have, want := m.clients[i].Output, int(m.of[i].output)
	if have < 0 || want < 0 || m.clients[i].Status != events.Succeeded {
		return
	}
	t.Requests++
	t.Client, t.Server = t.Client+int64(have), t.Server+int64(want)
	if have != want {
		t.Differ++
	}
}

func (m *matches) endToEnd(r *Requests) {
	var client, outside, server, decode, rest total
	var values []float64
	for i := range m.of {
		c, o := m.e2e(i)
		if c == unknownNS || m.contradicts(i) {
			continue
		}
		s := &m.of[i]
		values = append(values, float64(o)/1e9)
		client.add(c)
		outside.add(o)
		server.add(s.e2e)
		if s.decode >= 0 && s.ttft >= 0 {
			decode.add(s.decode)
			rest.add(s.e2e - s.ttft - s.decode)
		}
	}
	r.E2E = EndToEnd{Requests: client.n, Client: client.mean(), Outside: outside.mean(), Server: server.mean()}
	if decode.n == client.n {
		r.E2E.Decode, r.E2E.Rest = decode.mean(), rest.mean()
	}
	r.OutsideE2E = outsideOf(values)
}

func outsideOf(values []float64) Outside {
	slices.Sort(values)
	var all float64
	for _, v := range values {
		all += v
	}
	return Outside{Requests: len(values), Mean: quotient(all, float64(len(values))), Min: quantile(values, 0),
		P50: quantile(values, 0.5), P99: quantile(values, 0.99), Max: quantile(values, 1)}
}
