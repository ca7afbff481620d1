package headline

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
)

// Kind is what can be asked of a word.
type Kind int

// The kinds of words.
const (
	Distribution Kind = iota // of times, and the real-time factor: mean, percentiles, count, share
	Number                   // one number of the window: the word alone
	Level                    // a gauge: the word alone is its mean over time; max, min, last
	Counter                  // total, rate
)

// Word is a quantity as people type and read it everywhere.
type Word struct {
	Name  string // "ttft"
	ID    string // of package catalog: "ttft_s"
	Title string
	Unit  string // as package units names it
	Kind  Kind

	derived string // canonical id, or name, of the derived quantity: the mean of a distribution, or the number itself
}

// Words returns the vocabulary, in the order of screens.
func Words() []Word {
	out := []Word{
		{Name: "request_rate", Title: "request rate", Unit: "requests/s", Kind: Number},
		{Name: "output_tok_s", Title: "output tokens", Unit: "tokens/s", Kind: Number},
		{Name: "input_tok_s", Title: "input tokens", Unit: "tokens/s", Kind: Number},
		{Name: "isl", ID: "isl_mean", Title: "ISL", Unit: "tokens", Kind: Number},
		{Name: "osl", ID: "osl_mean", Title: "OSL", Unit: "tokens", Kind: Number},
		{Name: "running", Title: "running", Unit: "requests", Kind: Level},
		{Name: "waiting", Title: "waiting", Unit: "requests", Kind: Level},
		{Name: "kv_usage", Title: "KV", Unit: "ratio", Kind: Level},
		{Name: "kv_capacity", Title: "KV capacity", Unit: "tokens", Kind: Level},
		{Name: "client_cpu", Title: "client's CPUs", Unit: "ratio", Kind: Level},
		{Name: "client_thread", Title: "client's busiest thread", Unit: "ratio", Kind: Level},
	}
	for _, title := range []string{"TTFT", "ITL", "TPOT", "E2E", "queue", "prefill", "decode", "inference"} {
		name := strings.ToLower(title)
		out = append(out, Word{Name: name, ID: name + "_s", Title: title, Unit: "seconds", derived: name + "_mean_s"})
	}
	out = append(out,
		Word{Name: "audio_ttfp", ID: "audio_ttfp_s", Title: "first audio", Unit: "seconds", derived: "audio_ttfp_mean_s"},
		Word{Name: "rtf", Title: "real-time factor", Unit: "ratio"},
		Word{Name: "error_ratio", Title: "errors", Unit: "ratio", Kind: Number},
		Word{Name: "rejected_share", Title: "rejected", Unit: "ratio", Kind: Number},
		Word{Name: "queue_share", Title: "queue share", Unit: "ratio", Kind: Number},
		Word{Name: "prefix_hit_ratio", Title: "prefix hits", Unit: "ratio", Kind: Number},
		Word{Name: "spec_acceptance_length", Title: "accepted draft", Unit: "tokens", Kind: Number},
		Word{Name: "j_per_token", Title: "energy per token", Unit: "joule", Kind: Number})
	for _, name := range []string{"started", "success", "failure", "aborted", "refused", "preemption", "answers",
		"input_tokens", "output_tokens", "step_tokens", "prefix_query", "prefix_hit"} {
		w := Word{Name: name, Title: strings.ReplaceAll(name, "_", " "), Unit: "requests", Kind: Counter}
		if strings.HasSuffix(name, "_tokens") || strings.HasPrefix(name, "prefix") {
			w.Unit = "tokens"
		}
		out = append(out, w)
	}
	for i := range out {
		w := &out[i]
		w.ID = cmp.Or(w.ID, w.Name)
		if w.Kind == Number || w.Kind == Level {
			w.derived = w.ID
		}
	}
	return out
}

// statWords are statistics by kind, beside percentiles of distributions; "mean" of a number or level is the word alone.
var statWords = map[Kind][]string{Distribution: {"mean", "count"}, Level: {"mean", "max", "min", "last"},
	Counter: {"total", "rate"}}

// Stats tells in words which statistics a word has, such as "mean, pNN, count, share(VALUE)"; "" for one number.
func (w *Word) Stats() string {
	list := slices.Clone(statWords[w.Kind])
	if w.Kind == Distribution {
		list = slices.Insert(list, 1, "pNN")
		list = append(list, "share(VALUE)")
	}
	return strings.Join(list, ", ")
}

// Parse reads WORD, WORD_STAT or "WORD STAT", where the id of package catalog stands for the word as well, in upper or
// lower case; ok is false for what is none. stat is "" where none is given.
func Parse(text string) (w Word, stat string, ok bool) {
	text = strings.ToLower(strings.Join(strings.Fields(text), "_"))
	all := Words()
	for _, w := range all {
		switch {
		case text == w.Name || text == w.ID:
			return w, "", true
		case text == w.derived && text != "":
			return w, "mean", true
		}
	}
	for _, w := range all {
		for _, name := range []string{w.ID, w.Name} {
			stat, found := strings.CutPrefix(text, name+"_")
			if stat == "avg" {
				stat = "mean"
			}
			if found && w.has(stat) {
				return w, stat, true
			}
		}
	}
	return Word{}, "", false
}

// has reports whether a statistic can be asked of a word.
func (w *Word) has(stat string) bool {
	if w.Kind == Distribution {
		r := Row{Stat: stat}
		if q, ok := r.Quantile(); ok {
			return q > 0 && q < 1
		}
	}
	return slices.Contains(statWords[w.Kind], stat) || w.Kind == Number && stat == "mean" && w.ID == w.Name+"_mean"
}

// Derived returns the canonical id, or the name, of the derived quantity that is the mean of a distribution, a number
// or the mean of a level; "" of a counter.
func (w *Word) Derived() string { return w.derived }

// Row returns what headlines have of a word: mean and percentiles of a distribution, a number, the mean of a level.
func (w *Word) Row(stat string) (Row, bool) {
	q := "" // of names: that of numbers and levels has none
	switch {
	case w.Kind == Counter, stat != "" && !w.has(stat), w.Kind == Distribution && (stat == "" || stat == "count"):
		return Row{}, false
	case w.Kind == Level && stat != "" && stat != "mean":
		return Row{}, false
	case w.Kind == Distribution || w.ID == w.Name+"_mean":
		q = cmp.Or(stat, "mean")
	}
	all := slices.Concat(Rows(), load(), context())
	if i := slices.IndexFunc(all, func(r Row) bool { return r.ID == w.Name && r.Stat == q }); i >= 0 {
		return all[i], true
	}
	r := Row{ID: w.Name, Stat: q, Title: strings.TrimSpace(w.Title + " " + q), Unit: w.Unit, Better: catalog.LowerBetter}
	if w.Kind == Distribution {
		r.family = w.ID
	}
	if q == "mean" || w.Kind != Distribution {
		r.derived = w.derived
	}
	return r, true
}

// Named returns the row of a name such as ttft_p99, queue_mean and error_ratio.
func Named(name string) (Row, bool) {
	w, stat, ok := Parse(name)
	if !ok {
		return Row{}, false
	}
	return w.Row(stat)
}

// usualStats are what screens show of a distribution.
var usualStats = []string{"mean", "p50", "p90", "p99"}

// Names returns what people call a quantity of a canonical id of package catalog: the word, the id, and the word with
// the statistics that screens show. The id alone where there is no word.
func Names(id string) []string {
	for _, w := range Words() {
		switch {
		case id == "":
		case w.ID != id && w.derived != id:
		case w.Kind != Distribution:
			return slices.Compact([]string{w.Name, id})
		case w.derived == id:
			return []string{w.Name, w.Name + "_mean", id}
		default:
			out := []string{w.Name, id}
			for _, s := range usualStats {
				out = append(out, w.Name+"_"+s)
			}
			return slices.Compact(out)
		}
	}
	if id == "" {
		return nil
	}
	return []string{id}
}

// Called reports whether a pattern matches the name of a family or derived quantity, or what people call it.
func Called(pattern *regexp.Regexp, name, id string) bool {
	return pattern.MatchString(name) || slices.ContainsFunc(Names(id), pattern.MatchString)
}

// Spellings returns all names of the vocabulary, for what was misspelt.
func Spellings() (out []string) {
	for _, w := range Words() {
		out = append(out, Names(w.ID)...)
		for _, s := range statWords[w.Kind] {
			if w.Kind != Distribution {
				out = append(out, w.Name+"_"+s)
			}
		}
	}
	return out
}

// NeedsUnit explains that a time is given without a unit.
func NeedsUnit(what string, value float64) string {
	v := strconv.FormatFloat(value, 'f', -1, 64)
	return what + " is a time, and " + v + " has no unit: write " + v + "ms or " + v + "s, such as 450ms"
}
