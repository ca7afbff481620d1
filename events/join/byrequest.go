package join

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/metric"
)

// Records are what servers themselves tell of single requests. A *rundb.Run has them.
type Records interface {
	ServerSources(ctx context.Context) ([]metric.ServerSource, error)
	ServerRequests(ctx context.Context) iter.Seq2[*metric.ServerRequest, error]
}

// Coverage counts both sides of a join by id.
type Coverage struct {
	Clients       int `json:"clients"` // that were issued in the window
	Records       int `json:"records"` // all that there are
	Joined        int `json:"joined_clients"`
	JoinedRecords int `json:"joined_records"`
	Groups        int `json:"groups_of_several"` // clients that several records were folded for
	Superseded    int `json:"records_superseded,omitempty"`
	Ambiguous     int `json:"records_ambiguous"` // their id is that of several clients: joined with none
	// Elsewhere are records of clients outside of the window.
	Elsewhere     int `json:"records_of_other_windows,omitempty"`
	WithoutClient int `json:"records_without_client"`
	WithoutRecord int `json:"clients_without_record"`
	// Gained is what the server's own counter of requests gained, nil where nothing says.
	Gained *float64 `json:"counter_gained,omitempty"`
}

// The keys by which a record finds its client, in the order in which they are tried.
const (
	byTrace = "trace"
	byBody  = "response_id"
	byXID   = "x_request_id"
	byID    = "id"
	byVLLM  = "vllm_rule"
	byStart = "arrival" // TensorRT-LLM: the record arrived when the answer tells that its request did
)

// key is an id of a client by its hash, which ids are compared behind.
type key struct {
	hash   uint64
	client int32
}

// keys finds clients by their ids.
type keys struct {
	seed    maphash.Seed
	clients []events.Request
	list    []key // sorted
}

func newKeys(clients []events.Request) *keys {
	k := &keys{seed: maphash.MakeSeed(), clients: clients, list: make([]key, 0, 2*len(clients))}
	for i := range clients {
		for _, by := range []string{byTrace, byBody, byXID, byID} {
			if id := idOf(&clients[i], by); id != "" {
				k.list = append(k.list, key{k.hash(by, id), int32(i)})
			}
		}
	}
	slices.SortFunc(k.list, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.client, b.client))
	})
	return k
}

func idOf(q *events.Request, by string) string {
	switch by {
	case byTrace:
		return q.TraceID
	case byBody:
		return q.ResponseID
	case byXID:
		return q.RequestID
	}
	return q.ID
}

func (k *keys) hash(by, id string) uint64 {
	return maphash.String(k.seed, id) ^ uint64(len(by))*0x9e3779b97f4a7c15
}

// find returns the client that has an id, and how many have it.
func (k *keys) find(by, id string) (client, n int) {
	if id == "" {
		return -1, 0
	}
	h := k.hash(by, id)
	at, _ := slices.BinarySearchFunc(k.list, h, func(x key, h uint64) int { return cmp.Compare(x.hash, h) })
	for ; at < len(k.list) && k.list[at].hash == h; at++ {
		if i := int(k.list[at].client); idOf(&k.clients[i], by) == id {
			client, n = i, n+1
		}
	}
	return client, n
}

// of finds the client of a record: the first key that hits decides. internal is set where the record's id is a number
// of the server's own.
func (k *keys) of(q *metric.ServerRequest, internal bool) (client, n int, by string) {
	id := q.ID
	if internal {
		id = ""
	}
	part := withoutPart(id)
	for _, try := range [...]struct{ name, by, id string }{{byTrace, byTrace, q.Trace}, {byBody, byBody, id},
		{byXID, byXID, q.Alt}, {byXID, byXID, id}, {byID, byID, q.Alt}, {byID, byID, id}, {byVLLM, byBody, part},
		{byVLLM, byXID, withoutKind(part)}, {byVLLM, byID, withoutKind(part)}} {
		if client, n = k.find(try.by, try.id); n > 0 {
			return client, n, try.name
		}
	}
	return -1, 0, ""
}

// withoutPart drops the number of a prompt that vLLM puts behind an id.
func withoutPart(id string) string {
	if i := strings.LastIndexAny(id, "-_"); i > 0 && i+1 < len(id) && strings.Trim(id[i+1:], "0123456789") == "" {
		return id[:i]
	}
	return id
}

// withoutKind drops what vLLM puts before an id.
func withoutKind(id string) string {
	for _, kind := range []string{"cmpl-", "chatcmpl-", "resp_"} {
		if rest, ok := strings.CutPrefix(id, kind); ok {
			return rest
		}
	}
	return id
}

// served is the records of one request of a client together. Times are nanoseconds, instants 0 and durations and counts
// -1 where they are not known.
type served struct {
	arrival, first, finish                          int64
	front, queue, prefill, decode, ttft, e2e        int64
	prompt, cached, output, preempted, known, place int32
	source                                          int16
	parts                                           uint16
	by                                              uint8
}

// matches is a join of single requests in the making.
type matches struct {
	Coverage
	clients []events.Request
	sources map[int]metric.ServerSource
	of      []served // by client; parts is 0 where there is no record
	places  []metric.ServerPlace
	bys     []string
	clockOf map[int]*Clock // by source
	keys    *keys
	within  func(*events.Request) bool // reports whether a client counts
}

// match joins records with clients by their ids. A client counts when within reports so of it; records of others are
// joined with none.
func match(ctx context.Context, clients []events.Request, rec Records, within func(*events.Request) bool) (*matches,
	error) {
	m := &matches{clients: clients, of: make([]served, len(clients)), sources: map[int]metric.ServerSource{},
		bys: []string{byTrace, byBody, byXID, byID, byVLLM, byStart}, keys: newKeys(clients), within: within}
	sources, err := rec.ServerSources(ctx)
	if err != nil {
		return nil, fmt.Errorf("join requests by id: %w", err)
	}
	for _, s := range sources {
		m.sources[s.ID] = s
	}
	places := map[metric.ServerPlace]int32{}
	starts, err := m.starts(ctx, rec)
	if err != nil {
		return nil, fmt.Errorf("join requests by id: %w", err)
	}
	for q, err := range rec.ServerRequests(ctx) {
		if err != nil {
			return nil, fmt.Errorf("join requests by id: %w", err)
		}
		m.Records++
		client, n, by := m.keys.of(q, m.internal(q))
		if n == 0 {
			client, n, by = started(starts, q.ArrivalNS)
		}
		switch {
		case n == 0:
			m.WithoutClient++
		case n > 1:
			m.Ambiguous++
		case !within(&clients[client]):
			m.Elsewhere++
		default:
			place, ok := places[q.ServerPlace]
			if !ok {
				place = int32(len(m.places))
				places[q.ServerPlace] = place
				m.places = append(m.places, q.ServerPlace)
			}
			m.add(client, q, place, uint8(slices.Index(m.bys, by)))
		}
	}
	for i := range clients {
		s := &m.of[i]
		switch {
		case !within(&clients[i]):
			continue
		case s.parts == 0:
			m.WithoutRecord++
		default:
			m.Joined++
			m.JoinedRecords += int(s.parts)
			if s.parts > 1 {
				m.Groups++
			}
		}
		m.Clients++
	}
	return m, nil
}

// internal reports whether the id of a record is a number of the server's own.
func (m *matches) internal(q *metric.ServerRequest) bool {
	kind := m.sources[q.Source].Kind
	return strings.HasPrefix(kind, "trtllm") && kind != trtllmAnswer
}

// trtllmAnswer is the kind of what TensorRT-LLM tells of a request in its answer, by the id of the body.
const trtllmAnswer = "trtllm-answer"

// starts are the clients whose answers tell when their request arrived at TensorRT-LLM, on the server's clock: its own
// records know no id of clients. It is nil without such answers. An instant of several clients is -1.
func (m *matches) starts(ctx context.Context, rec Records) (out map[int64]int, err error) {
	some := false
	for _, s := range m.sources {
		some = some || s.Kind == trtllmAnswer
	}
	if !some {
		return nil, nil
	}
	out = map[int64]int{}
	for q, err := range rec.ServerRequests(ctx) {
		if err != nil {
			return nil, err
		}
		if m.sources[q.Source].Kind != trtllmAnswer || q.ArrivalNS == 0 {
			continue
		}
		if client, n, _ := m.keys.of(q, false); n == 1 {
			if other, ok := out[q.ArrivalNS]; ok && other != client {
				client = -1
			}
			out[q.ArrivalNS] = client
		}
	}
	return out, nil
}

// started finds the client whose request arrived at an instant, to 1 ns.
func started(starts map[int64]int, arrivalNS int64) (client, n int, by string) {
	for _, at := range [...]int64{arrivalNS, arrivalNS - 1, arrivalNS + 1} {
		if client, ok := starts[at]; ok && arrivalNS != 0 {
			if client < 0 {
				return -1, 2, byStart
			}
			return client, 1, byStart
		}
	}
	return -1, 0, ""
}

// add folds a record into those of its client. Of two sources the one that knows more counts.
func (m *matches) add(client int, q *metric.ServerRequest, place int32, by uint8) {
	to, next := &m.of[client], newServed(q, place, by)
	switch {
	case to.parts == 0:
		*to = next
	case to.source != next.source && m.kind(to) != m.kind(&next):
		if m.Superseded++; next.known > to.known {
			m.Superseded += int(to.parts) - 1
			*to = next
		}
	default:
		to.fold(&next)
	}
}

func (m *matches) kind(s *served) string { return m.sources[int(s.source)].Kind }

func newServed(q *metric.ServerRequest, place int32, by uint8) served {
	small := func(n int64) int32 { return int32(min(n, 1<<31-1)) }
	s := served{arrival: q.ArrivalNS, first: q.FirstNS, finish: q.FinishNS, front: int64(q.Front), queue: int64(q.Queue),
		prefill: int64(q.Prefill), decode: int64(q.Decode), ttft: int64(q.TTFT), e2e: int64(q.E2E),
		prompt: small(q.Prompt), cached: small(q.Cached), output: small(q.Output), preempted: small(q.Preempted),
		source: int16(q.Source), parts: 1, place: place, by: by}
	s.finish = cmp.Or(s.finish, q.LastNS)
	for _, at := range q.Instants() {
		if *at != 0 {
			s.known++
		}
	}
	for _, d := range q.Durations() {
		if *d >= 0 {
			s.known++
		}
	}
	return s
}

// fold takes another record of the same request in: the earliest arrival and first token, the latest end, all output.
// What is not the same of both is not known of the request.
func (s *served) fold(o *served) {
	earliest := func(a, b int64) int64 {
		if a == 0 || b != 0 && b < a {
			return b
		}
		return a
	}
	s.arrival, s.first, s.finish = earliest(s.arrival, o.arrival), earliest(s.first, o.first), max(s.finish, o.finish)
	for _, d := range [...]struct{ to, from *int64 }{{&s.front, &o.front}, {&s.queue, &o.queue}, {&s.prefill, &o.prefill},
		{&s.decode, &o.decode}, {&s.ttft, &o.ttft}, {&s.e2e, &o.e2e}} {
		if *d.to != *d.from {
			*d.to = -1
		}
	}
	if s.arrival != 0 && s.first != 0 {
		s.ttft = s.first - s.arrival
	}
	if s.arrival != 0 && s.finish != 0 {
		s.e2e = s.finish - s.arrival
	}
	if s.output >= 0 && o.output >= 0 {
		s.output += o.output
	} else {
		s.output = -1
	}
	s.parts++
	s.known = max(s.known, o.known)
}
