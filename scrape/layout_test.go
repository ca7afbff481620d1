package scrape_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// twins decodes each body twice: by replay where that is possible, and always
// line by line, from nothing. Both must tell the same story, and that of textparse.
type twins struct {
	fast, slow   *scrape.Decoder
	saw, sawSlow consumer
	spare        [2][]byte
	parsed       int // bodies that textparse read whole
}

func newTwins(t testing.TB) *twins {
	return &twins{fast: newDecoder(t, scrape.Options{}), slow: newDecoder(t, scrape.Options{})}
}

func (w *twins) step(t testing.TB, b scrape.Body) *metric.Snapshot {
	t.Helper()
	var s, r metric.Snapshot
	body := b.Bytes
	b.Bytes = append(w.spare[0][:0], body...)
	w.fast.Decode(&s, b)
	w.saw.apply(t, &s)
	w.scribble(0, b.Bytes)
	w.slow.Forget()
	b.Bytes = append(w.spare[1][:0], body...)
	w.slow.Decode(&r, b)
	w.sawSlow.apply(t, &r)
	w.scribble(1, b.Bytes)
	if s.Outcome != r.Outcome || s.Err != r.Err || s.Lines != r.Lines || !slices.Equal(s.Drops, r.Drops) ||
		s.Delta.Full != r.Delta.Full {
		t.Fatalf("body %q:\nreplay       %v %q %d lines, drops %v, full %v\nline by line %v %q %d lines, drops %v, full "+
			"%v", body, s.Outcome, s.Err, s.Lines, s.Drops, s.Delta.Full, r.Outcome, r.Err, r.Lines, r.Drops, r.Delta.Full)
	}
	if !slices.Equal(s.Delta.Slots, r.Delta.Slots) || !slices.Equal(s.Delta.Bits, r.Delta.Bits) {
		t.Fatalf("body %q:\nreplay       %v %v\nline by line %v %v", body, s.Delta.Slots, s.Delta.Bits, r.Delta.Slots,
			r.Delta.Bits)
	}
	if !slices.Equal(s.Warnings, r.Warnings) {
		t.Fatalf("body %q:\nreplay warns of       %v\nline by line warns of %v", body, s.Warnings, r.Warnings)
	}
	if !s.Outcome.Stored() {
		return &s
	}
	if got, want := w.saw.samples(), w.sawSlow.samples(); !slices.Equal(got, want) {
		t.Fatalf("body %q:\nreplay    %q\nline by line %q", body, got, want)
	}
	if b.Bytes = body; w.saw.agrees(t, &s, b) {
		w.parsed++
	}
	return &s
}

// scribble overwrites a body: the decoder must have kept nothing of it.
func (w *twins) scribble(which int, body []byte) {
	for i := range body {
		body[i] = '7'
	}
	w.spare[which] = body
}

// drawValue draws a value text: mostly plain, sometimes odd, sometimes wrong.
func drawValue(t *rapid.T) string {
	switch rapid.IntRange(0, 9).Draw(t, "value kind") {
	case 0:
		return rapid.SampledFrom([]string{"NaN", "nan", "+Inf", "-Inf", "inf", "-nan", "-nan(ind)", "Nan", "-0", "0",
			"00012", "1.", ".5", "+3", "1e5", "1E-7", "1e999", "0x10", "1_000", "", "foo", "1 2", "9223372036854775807",
			"9007199254740992",
			"9007199254740993", "1e22", "0e999999"}).Draw(t, "odd value")
	case 1:
		return strconv.FormatFloat(rapid.Float64().Draw(t, "float"),
			byte(rapid.SampledFrom([]rune("efg")).Draw(t, "verb")), -1, 64)
	case 2:
		return fmt.Sprintf("%d.%d", rapid.IntRange(0, 1e6).Draw(t, "whole"), rapid.IntRange(0, 1e9).Draw(t, "part"))
	case 3:
		return pyFloat(float64(rapid.IntRange(-5, 1e9).Draw(t, "python")))
	}
	return strconv.Itoa(rapid.IntRange(0, 300).Draw(t, "integer"))
}

func drawLine(t *rapid.T) string {
	name := rapid.SampledFrom([]string{"a", "b_total", "b_created", "h_bucket", "h_sum", "h_count", "h_created", "s",
		"s_sum", `{"u.v"`, "c"}).Draw(t, "name")
	var pairs []string
	if strings.HasPrefix(name, "{") {
		name, pairs = "", []string{name[1:]}
	}
	for range rapid.IntRange(0, 2).Draw(t, "labels") {
		label := rapid.SampledFrom([]string{"le", "le", "quantile", "x", "y"}).Draw(t, "label")
		value := rapid.SampledFrom([]string{"1", "1.0", "+Inf", "0.5", `q\"`, `,le=`, "}", "é", "", "\xff", "2"}).Draw(t,
			"label value")
		pairs = append(pairs, label+`="`+value+`"`)
	}
	out := name
	if len(pairs) > 0 || rapid.IntRange(0, 9).Draw(t, "braces") == 0 {
		out += "{" + strings.Join(pairs, rapid.SampledFrom([]string{",", ",", ", "}).Draw(t, "comma")) + "}"
	}
	out += rapid.SampledFrom([]string{" ", " ", " ", "  ", "\t", "", "+"}).Draw(t, "blank") + drawValue(t)
	return out + rapid.SampledFrom([]string{"", "", "", "", "", " ", " 1700000000", " -5", " 1.5", ` # {t="1"} 1`,
		"\r", " x"}).Draw(t, "tail")
}

func drawAny(t *rapid.T) string {
	switch rapid.IntRange(0, 7).Draw(t, "line kind") {
	case 0:
		return rapid.SampledFrom([]string{"# TYPE h histogram", "# TYPE b_total counter", "# TYPE b counter",
			"# TYPE s summary", "# TYPE a gauge", "# TYPE a counter", "# TYPE a bananas", "#  TYPE  h_created  gauge",
			"# HELP a help", "# EOF", "# comment", "",
			"  ", "#", "# TYPE b_created gauge"}).Draw(t, "meta")
	}
	return drawLine(t)
}

// mutate changes a body as servers do, and as broken connections do.
func mutate(t *rapid.T, lines []string) []string {
	lines = slices.Clone(lines)
	at := rapid.IntRange(0, max(0, len(lines)-1)).Draw(t, "at")
	switch rapid.IntRange(0, 9).Draw(t, "mutation") {
	case 0:
		return slices.Insert(lines, at, drawAny(t))
	case 1:
		if len(lines) > 0 {
			return slices.Delete(lines, at, at+1)
		}
	case 2:
		if len(lines) > 1 {
			other := rapid.IntRange(0, len(lines)-1).Draw(t, "other")
			lines[at], lines[other] = lines[other], lines[at]
		}
	case 3:
		if len(lines) > 0 {
			lines[at] = drawAny(t)
		}
	default:
		for i, l := range lines {
			if n := strings.LastIndexByte(l, ' '); n > 0 && !strings.HasPrefix(l, "#") &&
				rapid.IntRange(0, 2).Draw(t, "change") == 0 {
				lines[i] = l[:n+1] + drawValue(t)
			}
		}
	}
	return lines
}

func TestReplayEqualsTextparse(t *testing.T) {
	parsed := 0
	rapid.Check(t, func(t *rapid.T) {
		w := twins{fast: mustDecoder(t), slow: mustDecoder(t)}
		lines := rapid.SliceOfN(rapid.Custom(drawAny), 1, 15).Draw(t, "lines")
		for range rapid.IntRange(2, 8).Draw(t, "polls") {
			text := strings.Join(lines, "\n")
			text += rapid.SampledFrom([]string{"\n", "\n", "\n", "\n", "", "\n# EOF\n", "\n\n"}).Draw(t, "end")
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				text = text[:rapid.IntRange(0, len(text)).Draw(t, "length")]
			}
			contentType := classic
			if rapid.IntRange(0, 4).Draw(t, "format") == 0 {
				contentType = openMetrics
			}
			b := scrape.Body{Bytes: []byte(text), ContentType: contentType, Cut: rapid.IntRange(0, 15).Draw(t, "announced") == 0}
			w.step(rapidTB{TB: nil, t: t}, b)
			lines = mutate(t, lines)
		}
		parsed += w.parsed
	})
	if parsed == 0 { // usually 70, or 10 where fewer cases are drawn
		t.Error("textparse read no body")
	}
}

// rapidTB lets the helpers of testing.TB report to rapid.
type rapidTB struct {
	testing.TB
	t *rapid.T
}

func (r rapidTB) Helper()                      { r.t.Helper() }
func (r rapidTB) Fatal(args ...any)            { r.t.Fatal(args...) }
func (r rapidTB) Fatalf(f string, args ...any) { r.t.Fatalf(f, args...) }

func mustDecoder(t *rapid.T) *scrape.Decoder {
	d, err := scrape.NewDecoder(scrape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestReplayIsUsed(t *testing.T) {
	check := func(first, second string, want bool) {
		t.Helper()
		d := newDecoder(t, scrape.Options{})
		d.Decode(new(metric.Snapshot), scrape.Body{Bytes: []byte(first), ContentType: classic})
		if got := d.Replays([]byte(second)); got != want {
			t.Errorf("%q then %q: replay %v, want %v", first, second, got, want)
		}
	}
	check("a 1\nb{x=\"1\"} 2\n", "a 17\nb{x=\"1\"} 2.5e3\n", true)
	check("a 1\n", "a NaN\n", true)
	check("a -nan(ind)\n", "a -nan(ind)\n", true)
	check("a -nan(ind)\n", "a 5\n", true)
	check("a 5\n", "a -nan(ind)\n", false)
	check("foo bar\na 1\n", "foo bar\na 2\n", true)
	check("foo bar\na 1\n", "foo baz\na 2\n", false)
	check("a 1\r\n", "a 2\r\n", true)
	check("a 1 1700000000\n", "a 2 1700000000\n", true)
	check("a 1 1700000000\n", "a 2 1700000001\n", false)
	check("a 1\n", "a 0x10\n", false)
	check("a 1\n", "a 1 \n", false)
	check("a 1\n", "b 1\n", false)
	check("a 1\n", "a 1\nb 1\n", false)
	check("a 1\nb 1\n", "a 1\n", false)
	check("a 1\n", "a 1", false)
	check("a 1\na 2\n", "a 5\na 6\n", true)
	check("a\t1\n", "a\t2\n", true)
	check("a{x=\"1\"}1\n", "a{x=\"1\"}2\n", true)
	check("a+1 5\n", "a1 5\n", false) // the value +1, and the series a1
	check("a+1 5\n", "a+2 5\n", false)
}

func TestParseValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawValue(t)
		if rapid.Bool().Draw(t, "digits") {
			text = rapid.StringMatching(`[-+]?[0-9]{0,22}(\.[0-9]{0,24})?([eE][-+]?[0-9]{1,3})?`).Draw(t, "text")
		}
		text, _, _ = strings.Cut(text, " ")
		checkValue(t, text)
	})
}

func checkValue(t interface{ Fatalf(string, ...any) }, text string) {
	bits, end, ok := scrape.ParseValue([]byte(text+"\n"), 0)
	if !ok {
		return
	}
	want, err := strconv.ParseFloat(text, 64)
	if err != nil || end != len(text) || bits != math.Float64bits(want) {
		t.Fatalf("%q: got %x to %d, want %x (%v)", text, bits, end, math.Float64bits(want), err)
	}
}

func FuzzParseValue(f *testing.F) {
	for _, s := range []string{"1", "-0", "1.0", "0.1", "123456789012345678", "1e22", ".5", "5.", "9007199254740993",
		"", "-", "NaN", "1e-400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer fuzzbound.Check(t)()
		if !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' }) {
			checkValue(t, s)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add(s, s, false)
		f.Add(s, strings.ReplaceAll(s, " 1\n", " 2\n"), true)
	}
	f.Fuzz(func(t *testing.T, first, second string, om bool) {
		defer fuzzbound.Check(t)()
		w := newTwins(t)
		contentType := classic
		if om {
			contentType = openMetrics
		}
		for _, text := range []string{first, second, first, second} {
			w.step(t, scrape.Body{Bytes: []byte(text), ContentType: contentType})
		}
	})
}

var fuzzSeeds = []string{
	"# HELP a text\n# TYPE a counter\na{x=\"1\"} 1\na{x=\"2\"} 1\n",
	"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n# TYPE h_created " +
		"gauge\nh_created 1\n",
	"# TYPE s summary\ns{quantile=\"0.5\"} 1\ns_sum 1\ns_count 1\n",
	"# TYPE b counter\nb_total 1\nb_created 1\n# EOF\n",
	"{\"u.v\",\"l.x\"=\"1\"} 1\n", "{} 1\n", "a{b} 1\n", "a{", "a{b=\"", "\x00 1\n", "a{b=\"\x00\"} 1\n#\x00\nb 1\n",
	"a 1 # {t=\"1\"} 1\n", "a -nan(ind)\n", "\xef\xbb\xbfa 1\r\n", "a{b=\"x\ny\"} 1\n", "  a 1\n",
	"# TYPE a bananas\na 1\n", "a{b=\"1\",b=\"2\"} 1\n", "a 1\na 1\n", "[{\"a\":1}]", "<html>", "{\"a\": 1}",
	// Of the kind that made parsers of this class panic: a bare label in braces
	// (prometheus#18229), braces with nothing before them (prometheus#18949).
	"{a} 1\n", "{a", "{\"a\",b} 1\n", "a{b,c=\"1\"} 1\n", "{}", "{} 1", "{}{} 1\n", "{,} 1\n", "a{} 1 # {} 1\n# EOF\n",
}
