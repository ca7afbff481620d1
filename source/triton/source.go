package triton

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// Options configures a Source. The zero value polls everything the server lists.
type Options struct {
	// Header is sent with each request, over gRPC as metadata: for restricted APIs and authentication. It is not changed.
	Header http.Header
	// RoundTripper replaces the transport of HTTP, for TLS settings; nil is our
	// own. Whoever gave it closes its connections.
	RoundTripper http.RoundTripper
	// TLS is used over gRPC when the address asks for TLS; nil is Go's default.
	TLS *tls.Config
	// Authorization returns the authorization of a call over gRPC, asked for each time as tokens rotate; nil is none
	// besides Header. Over HTTP the RoundTripper adds it.
	Authorization func(ctx context.Context) (string, error)
	// Redact takes further secrets out of texts that are shown; nil knows of none.
	Redact func(string) string
	// Keep says which families are recorded, by name; nil is all.
	Keep func(family string) bool
	// Ensembles gives what each step of an ensemble calls: MODEL for its newest version that is ready, or MODEL/VERSION.
	// Those it does not name are asked for at the server.
	Ensembles map[string][]string
	Limits    Limits
	Version   string // for the User-Agent; "" is "dev"
}

// Source polls one server. Make one with [New]; it has one owner.
type Source struct {
	transport transport
	decoder   *Decoder
	steps     compositions
	told      bool // the server was asked for its version since it last failed to answer
}

// transport asks a server. fetch fills all of s that says how the request went; when its outcome is OK there is a body.
// config returns what the steps of an ensemble call, as Options.Ensembles has it, none for another model.
type transport interface {
	fetch(ctx context.Context, now func() int64, s *metric.Snapshot) []byte
	config(ctx context.Context, model, version string) ([]string, error)
	// version returns that of the server, "" where it tells none.
	version(ctx context.Context) (string, error)
	decode(d *Decoder, body []byte, s *metric.Snapshot)
	close() error
}

// New returns a source for an address: triton+http://host[:8000][/prefix], triton+https, triton+grpc://host[:8001] or
// triton+grpcs, each with an optional query ?model=M&version=V. It does not connect yet.
func New(address string, o Options) (*Source, error) {
	a, err := parseAddress(address)
	if err != nil {
		return nil, fmt.Errorf("make Triton source: %w", err)
	}
	d, err := NewDecoder(o)
	if err != nil {
		return nil, fmt.Errorf("make Triton source: %w", err)
	}
	s := &Source{decoder: d, steps: newCompositions(o.Ensembles)}
	o.Version = cmp.Or(o.Version, "dev")
	if a.grpc {
		if s.transport, err = newGRPC(&a, o, d.limits.Body); err != nil {
			return nil, fmt.Errorf("make Triton source: %w", err)
		}
	} else {
		s.transport = newHTTP(&a, o, d.limits.Body)
	}
	return s, nil
}

// Close closes the connections of the source.
func (s *Source) Close() error { return s.transport.close() }

// Poll makes one poll: it fills all of snap that says how it went and what it brought, with times from now. It returns
// soon after ctx is done. What snap receives stays valid until the next Poll.
func (s *Source) Poll(ctx context.Context, now func() int64, snap *metric.Snapshot) {
	snap.Outcome, snap.Status, snap.Err, snap.FirstByteNS = metric.OK, 0, "", 0
	snap.Body, snap.BodyBytes, snap.Duplicate, snap.Lines = nil, 0, false, 0
	snap.Drops, snap.Warnings, snap.DictDelta, snap.Delta = nil, nil, metric.DictDelta{}, metric.Delta{}
	snap.SentNS = now()
	body := s.transport.fetch(ctx, now, snap)
	snap.Duration = time.Duration(now() - snap.SentNS)
	if snap.Outcome != metric.OK {
		s.told = false // another one may answer next
		return
	}
	s.transport.decode(s.decoder, body, snap)
	if snap.Outcome.Stored() {
		s.steps.ask(ctx, s.transport, s.decoder)
		if !s.told && ctx.Err() == nil {
			s.told = true
			if v, err := s.transport.version(ctx); err == nil { // the statistics are complete without
				s.decoder.server = metric.Clean(v, maxVersion)
			}
		}
	}
}

// maxVersion bounds the text of a version.
const maxVersion = 64

// interrupted tells a passed deadline from the end of the run.
func interrupted(ctx context.Context) (metric.Outcome, string) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return metric.Timeout, "deadline of the whole scrape passed; see --timeout"
	}
	return metric.Cancelled, "the run ended first"
}

func tooLong(limit int64) string {
	return fmt.Sprintf("answer is longer than %d bytes; raise --max-body, or name a model: ?model=M", limit)
}

// compositions finds out which models are ensembles, and of what.
type compositions struct {
	given map[string]bool     // by the user
	asked map[modelKey]uint64 // the life for which the server was asked
}

// asksPerPoll bounds what finding out adds to a poll.
const asksPerPoll = 4

func newCompositions(given map[string][]string) compositions {
	c := compositions{given: map[string]bool{}, asked: map[modelKey]uint64{}}
	for name := range given {
		c.given[name] = true
	}
	return c
}

// ask asks the server for the configuration of models it was not asked for, once in the life of each, after the poll
// was measured. A server that does not answer is not asked again.
func (c *compositions) ask(ctx context.Context, t transport, d *Decoder) {
	n := 0
	for _, key := range d.order {
		life := d.models[key].life + 1
		if c.given[key.name] || c.asked[key] == life {
			continue
		}
		if n++; n > asksPerPoll || ctx.Err() != nil {
			return
		}
		c.asked[key] = life
		steps, err := t.config(ctx, key.name, key.version)
		if err != nil {
			continue // ensembles are a convenience: the statistics are complete without
		}
		if len(steps) > 0 {
			d.ensembles[key.name] = slices.Clone(steps)
		} else {
			delete(d.ensembles, key.name)
		}
	}
}
