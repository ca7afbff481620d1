package scrape_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// TestPanicCostsItsPoll: a panic while a body is decoded, wherever it strikes, is the
// outcome of that poll. The next body has all it had to tell.
func TestPanicCostsItsPoll(t *testing.T) {
	before := "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n"
	// Values change, one series comes, and there is something to warn of.
	after := "# TYPE a gauge\na 2\r\n# TYPE b gauge\nb 1\n# TYPE c gauge\nc{x=\"1\"} 3\n"
	want := []string{"gauge a = 2", "gauge b = 1", `gauge c{x="1"} = 3`}
	strike := map[string]func(d *scrape.Decoder) (mend func()){
		"at a new series": func(d *scrape.Decoder) func() {
			d.SetRelabel(func(string, metric.Labels) (string, metric.Labels, bool) { panic("injected") })
			return func() { d.SetRelabel(nil) }
		},
		"when all was taken over": func(d *scrape.Decoder) func() { return d.PanicInWarn() },
	}
	for name, inject := range strike {
		t.Run(name, func(t *testing.T) {
			d, c := newDecoder(t, scrape.Options{}), new(consumer)
			decode := func(body string) *metric.Snapshot {
				var s metric.Snapshot
				d.Decode(&s, scrape.Body{Bytes: []byte(body), ContentType: classic})
				return &s
			}
			c.apply(t, decode(before))
			mend := inject(d)
			for range 2 {
				s := decode(after)
				if s.Outcome != metric.NotPrometheus || !strings.HasPrefix(s.Err, metric.InternalError+": ") {
					t.Fatalf("got %v %q, want an internal error", s.Outcome, s.Err)
				}
				if !s.DictDelta.Empty() || len(s.Delta.Slots) > 0 || s.Lines != 0 || s.Drops != nil || s.Exemplars != nil ||
					s.Duplicate {
					t.Fatalf("a poll that panicked delivers %+v", s)
				}
			}
			mend()
			for range 3 { // once in full, then by its layout
				c.apply(t, decode(after))
				if got := c.samples(); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

// TestParserPanic: a panic of a parser of Prometheus costs what was being read, and
// is named in a warning of the poll.
func TestParserPanic(t *testing.T) {
	for contentType, body := range map[string]string{classic: "a 1\n",
		protobuf: delimited("\x0a\x01a\x18\x01\x22\x0b\x12\x09\x09\x00\x00\x00\x00\x00\x00\xf0\x3f")} {
		d := newDecoder(t, scrape.Options{})
		if d.PanicInParser() {
			t.Fatal("a parser without a body read something")
		}
		for i, want := range []int{1, 0} {
			var s metric.Snapshot
			d.Decode(&s, scrape.Body{Bytes: []byte(body), ContentType: contentType})
			n := 0
			for _, w := range s.Warnings {
				if w.Code == "parser_panic" && strings.Contains(w.Text, "nil pointer") {
					n++
				}
			}
			if s.Outcome != metric.OK || s.Lines != 1 || n != want {
				t.Errorf("%s, body %d: %v %q, warnings %v", contentType, i, s.Outcome, s.Err, s.Warnings)
			}
		}
	}
}
