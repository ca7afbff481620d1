package compare_test

import (
	"testing"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/compare/judge"
)

// A gate has a bad answer, none for want of evidence, or a good one.
func TestGate(t *testing.T) {
	line := func(v judge.Verdict, e judge.Evidence) compare.Line {
		var l compare.Line
		l.ID, l.Verdict, l.Evidence = "e2e", v, e
		return l
	}
	lacking := line(judge.NotJudged, judge.None)
	lacking.Lacks, lacking.Reason = true, "b has none"
	same := line(judge.Same, judge.Repeats)
	far := compare.LoadChange{Beyond: true}
	for _, c := range []struct {
		name       string
		words      []string
		lines      []compare.Line
		load       []compare.LoadChange
		allow      bool
		bad, lacks bool
	}{
		{"worse", []string{"worse"}, []compare.Line{line(judge.Worse, judge.Repeats)}, nil, false, true, false},
		{"single runs", []string{"worse"}, []compare.Line{line(judge.WithinNoise, judge.WithinRun)}, nil, false, false, true},
		{"single runs may move", []string{"moved"}, []compare.Line{line(judge.WithinNoise, judge.WithinRun)}, nil, false,
			false, false},
		{"unclear", []string{"unclear"}, []compare.Line{line(judge.Unclear, judge.Repeats)}, nil, false, true, false},
		{"no headline", []string{"worse"}, nil, nil, false, false, true},
		{"a row is missing", []string{"worse"}, []compare.Line{same, lacking}, nil, false, false, true},
		{"another load", []string{"worse"}, []compare.Line{same}, []compare.LoadChange{far}, false, false, true},
		{"another load is allowed", []string{"worse"}, []compare.Line{same}, []compare.LoadChange{far}, true, false, false},
		{"another load by chance", []string{"worse"}, []compare.Line{same}, []compare.LoadChange{{}}, false, false, false},
		{"no words", nil, nil, nil, false, false, false},
	} {
		g := compare.Gate{Words: c.words, AllowLoad: c.allow}
		if err := g.Check(); err != nil {
			t.Error(err)
		}
		bad, lacks := g.Judge(&compare.Result{Headline: c.lines, LoadDiffers: c.load})
		if bad != "" != c.bad || lacks != "" != c.lacks {
			t.Errorf("%s: bad %q, lacks %q", c.name, bad, lacks)
		}
	}
	if err := (compare.Gate{Words: []string{"nice"}}).Check(); err == nil {
		t.Error("an unknown word is taken")
	}
}
