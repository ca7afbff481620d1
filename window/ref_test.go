package window_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scrapestat/scrapestat/internal/testkit"
	"github.com/scrapestat/scrapestat/window"
)

func never(string) bool { return false }

// Acceptance row 9: selectors.
func TestSelectors(t *testing.T) {
	var v struct {
		Selectors []struct {
			Arg, Name, Run, What, Phase, Error string
			Instance                           int
			From                               *float64 `json:"from_s"`
			To                                 *float64 `json:"to_s"`
			FromBase                           string   `json:"from_base"`
			Warmup                             *float64 `json:"warmup_s"`
			Cooldown                           *float64 `json:"cooldown_s"`
		}
	}
	if err := json.Unmarshal(testkit.Data(t, "vectors/windows.json"), &v); err != nil {
		t.Fatal(err)
	}
	span := func(s *float64) *time.Duration {
		if s == nil {
			return nil
		}
		d := time.Duration(*s * 1e9)
		return &d
	}
	for _, c := range v.Selectors {
		got, err := window.Split(c.Arg, never)
		if (err != nil) != (c.Error != "") {
			t.Errorf("%s: error %v, want %q", c.Arg, err, c.Error)
		}
		if err != nil {
			continue
		}
		want := window.Arg{Name: c.Name, Run: c.Run, Own: got.Run != c.Arg && c.Arg != c.Name+"="+c.Run,
			Ref: window.Ref{What: window.What(c.What), Phase: c.Phase, Instance: c.Instance, Warmup: span(c.Warmup),
				Cooldown: span(c.Cooldown)}}
		if c.From != nil {
			want.Ref.From = window.Point{Base: window.FromCommand, Offset: *span(c.From)}
			if c.FromBase != "" {
				want.Ref.From.Base = window.Base(c.FromBase)
			}
		}
		if c.To != nil {
			want.Ref.To = window.Point{Base: window.FromCommand, Offset: *span(c.To)}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.Arg, diff)
		}
	}
	if len(v.Selectors) != 22 {
		t.Errorf("%d selectors", len(v.Selectors))
	}
}

// More of the grammar than the vectors have.
func TestMoreSelectors(t *testing.T) {
	for _, bad := range []string{"r@segment", "r@", "r@..", "r@30s..30s", "r@1s..x", "r@+-1s..", "r@high,", "r@high/00",
		"r@warmup=1s,warmup=2s", "r@phase=", "r@/2", "r@high,warmup=", "r@2026-01-02T03:04:05Z..2026-01-02T03:04:04Z"} {
		if got, err := window.Split(bad, never); err == nil {
			t.Errorf("%s: is %+v", bad, got)
		}
	}
	exists := func(name string) bool { return name == "odd@name" || name == "a=b@c" }
	for arg, want := range map[string]window.Arg{
		"odd@name":      {Run: "odd@name"},
		"x=odd@name":    {Name: "x", Run: "odd@name"},
		"odd@name@high": {Run: "odd@name", Own: true, Ref: window.Ref{What: window.Phase, Phase: "high"}},
		"a=b@c":         {Run: "a=b@c"},
		"d/x=y":         {Run: "d/x=y"},
		"r@phase=segment/2": {Run: "r", Own: true,
			Ref: window.Ref{What: window.Phase, Phase: "segment", Instance: 2}},
		"r@1s..+4s": {Run: "r", Own: true, Ref: window.Ref{What: window.Range,
			From: window.Point{Base: window.FromCommand, Offset: 1e9}, To: window.Point{Base: window.FromTraffic, Offset: 4e9}}},
	} {
		got, err := window.Split(arg, exists)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", arg, got, err)
		}
	}
}

// Whatever is read is written again as a selector of the same meaning.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"traffic", "high/2", "30s..90s", "+10s..", "..1m30s", "segment/3,warmup=5s", "phase=a/b/3",
		"2026-01-02T03:04:05.5Z..", "high,warmup=5s,cooldown=1s", "phase=traffic", "phase=x=y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := window.Parse(s)
		if err != nil {
			return
		}
		text := ref.String()
		again, err := window.Parse(text)
		if err != nil {
			t.Fatalf("%q is written %q: %v", s, text, err)
		}
		if diff := cmp.Diff(ref, again); diff != "" {
			t.Fatalf("%q is written %q: (-first +again)\n%s", s, text, diff)
		}
	})
}
