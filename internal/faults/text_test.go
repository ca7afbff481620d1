package faults_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/scrapestat/scrapestat/internal/badserver"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/scrape"
)

// TestCatalogueText has the cases P01 to P21.
func TestCatalogueText(t *testing.T) {
	var o scrape.Options
	run := func(id, name string, polls int, f func(s *scene)) {
		t.Helper()
		t.Run(id+" "+name, func(t *testing.T) { f(playCase(t, id, polls, o)) })
	}
	ok := all(metric.OK, 2)
	partial := all(metric.Partial, 2)
	run("P01", "empty", 2, func(s *scene) {
		s.outcomes("", ok...)
		s.warned("empty_body", "has no metrics")
	})
	run("P02", "CRLF", 2, func(s *scene) {
		s.outcomes("", ok...)
		s.warned("crlf", "CR was ignored")
		s.lasts("b", 2)
	})
	run("P03", "byte order mark", 2, func(s *scene) {
		s.outcomes("", ok...)
		s.warned("byte_order_mark", "ignored")
		s.total("a", 0, 0)
	})
	run("P04", "bad line", 2, func(s *scene) {
		s.outcomes("line 2: foo bar", partial...)
		s.dropped("parse", 2, "line 2: foo bar")
		s.lasts("a", 1)
		s.lasts("b", 2)
	})
	run("P05", "bad UTF-8", 2, func(s *scene) {
		s.outcomes("UTF-8", partial...)
		s.dropped("invalid_utf8", 2, "line 1")
		s.lasts("a", 2)
	})
	run("P06", "types", 2, func(s *scene) {
		s.outcomes("", ok...)
		s.warned("type_unknown", "counterr")
		s.warned("type_conflict", "two different types")
		for _, name := range []string{"a", "b", "c"} {
			if m := s.metric(name); m.Type != metric.Unknown {
				t.Errorf("%s is %v, want unknown", name, m.Type)
			}
		}
	})
	run("P07", "label twice", 2, func(s *scene) {
		s.outcomes("label occurs twice", partial...)
		s.dropped("duplicate_label", 2, `a{x="1",x="2"}`)
		s.lasts("b", 2)
	})
	run("P08", "series twice", 2, func(s *scene) {
		s.outcomes("the last one counts", partial...)
		s.dropped("duplicate_series", 4, `a{x="1"}`)
		s.lasts("a", 5)
		s.lasts("b", 2)
	})
	run("P09", "not finite", 2, notFinite)
	run("P10", "no numbers", 2, func(s *scene) {
		s.outcomes("line 1", partial...)
		s.dropped("parse", 8, "a 1e999")
		s.lasts("e", 5)
	})
	run("P11", "timestamps", 2, ownTimes)
	run("P12", "exemplar", 2, func(s *scene) {
		s.outcomes("", ok...)
		s.lasts("a_total", 17)
	})
	run("P13", "end of OpenMetrics", 2, func(s *scene) {
		s.outcomes("# EOF", partial...)
		s.dropped("after_eof", 1, "line 3")
		s.warned("truncated", "does not end in # EOF")
		s.lasts("a", 1)
	})
	run("P14", "OpenMetrics types", 2, openMetricsTypes)
	t.Run("P15 hostile labels", hostileLabels)
	run("P16", "UTF-8 names", 2, func(s *scene) {
		s.lasts("my.metric", 4)
		if v, _ := s.metric("my.metric").Series[0].Labels.Get("l.x"); v != "1" {
			t.Errorf("label l.x is %q", v)
		}
	})
	run("P17", "huge", 3, huge)
	t.Run("P18 more series each time", cardinality)
	run("P19", "broken protobuf", 3, func(s *scene) {
		for _, p := range s.polls[0] {
			if p.Outcome.Stored() || p.Err == "" {
				t.Errorf("poll %d: %v %q, want an error", p.Seq, p.Outcome, p.Err)
			}
		}
	})
	run("P20", "declared only", 2, func(s *scene) {
		if got := s.run.Endpoints[0].Declared; len(got) != 1 || got[0] != "a" {
			t.Errorf("declared without samples: %v, want a", got)
		}
		if len(s.run.Metrics) != 1 {
			t.Errorf("metrics %v, want b", s.names())
		}
	})
	run("P21", "lying content type", 3, lyingType)
}

// huge has a series of 100,000 labels, a line of 10 MiB, and 4.5 million lines
// without a sample. To decode one takes less than 2 s of processor time.
func huge(s *scene) {
	s.t.Helper()
	s.outcomes("", metric.Partial, metric.Partial, metric.OK)
	s.lasts("good", 3)
	s.lasts("late", 5)
	s.dropped("label_limit", 1, "--max-labels")
	s.dropped("value_limit", 1, "--max-value-length")
	for i, flag := range []string{"--max-labels", "--max-value-length"} {
		if p := s.polls[0][i]; !strings.Contains(p.Err, flag) {
			s.t.Errorf("poll %d: %q, want the flag %s", i, p.Err, flag)
		}
	}
	script, err := badserver.Case("P17")
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range 3 {
		d, err := scrape.NewDecoder(scrape.Options{})
		if err != nil {
			s.t.Fatal(err)
		}
		body := script(i).Body
		var p metric.Snapshot
		end := fuzzbound.Within(s.t, 2*time.Second, 128<<20)
		d.Decode(&p, scrape.Body{Bytes: body, ContentType: "text/plain"})
		end()
		if !p.Outcome.Stored() {
			s.t.Errorf("body %d: %v %q", i, p.Outcome, p.Err)
		}
	}
}

// lyingType: the bytes decide, and a warning names both sides.
func lyingType(s *scene) {
	s.t.Helper()
	s.outcomes("b: no exposition line", metric.OK, metric.OK, metric.NotPrometheus)
	s.warned("content_type", "Content-Type is \"application/vnd.google.protobuf")
	s.warned("content_type", "the body is text; it was read as Prometheus text")
	s.warned("format_changed", "from text to protobuf")
	if p := s.polls[0][1]; p.Lines != 1 || p.Dropped() != 0 {
		s.t.Errorf("protobuf under text: %d lines, %d of them dropped", p.Lines, p.Dropped())
	}
	script, err := badserver.Case("P21")
	if err != nil {
		s.t.Fatal(err)
	}
	s = play(s.t, badserver.Steps(false, script(1)), 2, scrape.Options{})
	s.outcomes("", all(metric.OK, 2)...)
	s.lasts("b", 2)
	s.warned("content_type",
		"Content-Type is \"text/plain; version=0.0.4\", and the body is protobuf; it was read as protobuf")
}

// ownTimes has samples with timestamps: now, an hour late and early, before 1970, of
// a fraction, and beyond what is a time. All samples are there, at the time of the
// scrape; the times are beside them unless they are none.
func ownTimes(s *scene) {
	s.t.Helper()
	s.outcomes("", all(metric.OK, 2)...)
	s.warned("timestamps", "7 samples")
	s.warned("timestamps_absurd", "2 samples")
	r, err := rundb.Open(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	var dict metric.Schema
	kept := map[string]float64{}
	for p, err := range r.Snapshots(s.t.Context(), 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if err := dict.Grow(&p.DictDelta); err != nil {
			s.t.Fatal(err)
		}
		for i, slot := range p.Delta.Slots {
			if x := dict.Slots[slot]; x.Role == metric.RoleSampleTime {
				kept[dict.FamilyOf(x.Series).Name] = p.Delta.Float(i)
			}
		}
	}
	want := map[string]float64{"now": 1700000000000, "late": 1699996400000, "early": 1700003600000,
		"fraction": 1700000000001, "h": 1700000000000}
	if !maps.Equal(kept, want) {
		s.t.Errorf("times %v, want %v", kept, want)
	}
	for _, name := range []string{"now", "late", "early", "negative", "overflow", "fraction", "none"} {
		if g := s.metric(name).Series[0].Gauge; g == nil || g.N < 1 || g.Last != 1 {
			s.t.Errorf("%s has no sample of the scrape: %+v", name, g)
		}
	}
}

func notFinite(s *scene) {
	s.outcomes("", all(metric.OK, 2)...)
	s.lasts("g", 3)
	s.warned("only_non_finite", "5")
}

func openMetricsTypes(s *scene) {
	s.outcomes("", all(metric.OK, 2)...)
	for name, want := range map[string]metric.Type{"a": metric.Counter, "i": metric.Info, "s": metric.StateSet,
		"gh": metric.GaugeHistogram} {
		if m := s.metric(name); m.Type != want {
			s.t.Errorf("%s is %v, want %v", name, m.Type, want)
		}
	}
	for _, name := range s.names() {
		if strings.HasSuffix(name, "_created") {
			s.t.Errorf("%s is a metric", name)
		}
	}
	if m := s.metric("a"); m.Unit+m.OwnUnit != "seconds" {
		s.t.Errorf("units of a are %q and %q", m.Unit, m.OwnUnit)
	}
}

// cardinality serves 100 series more in every body, beyond the limit.
func cardinality(t *testing.T) {
	var answers []badserver.Answer
	for n := range 5 {
		var b strings.Builder
		b.WriteString("good 1\n")
		for i := range 100 {
			fmt.Fprintf(&b, "leak{request=\"%d\"} 1\n", 100*n+i)
		}
		answers = append(answers, badserver.Answer{Type: "text/plain", Body: []byte(b.String())})
	}
	s := play(t, badserver.Steps(false, answers...), 5, scrape.Options{Limits: scrape.Limits{Series: 250}})
	s.warned("series_limit", `label "request" has the most values`)
	s.dropped("series_limit", 251, "--max-series")
	s.lasts("good", 1)
	if answers, lines := s.server.Ledger().Good(); answers != 5 || lines != 505 {
		t.Errorf("the server served %d bodies, %d lines", answers, lines)
	}
	if got := s.run.Endpoints[0].Ledger.Lines; got != 505 {
		t.Errorf("%d lines in the ledger, 505 were served", got)
	}
}
