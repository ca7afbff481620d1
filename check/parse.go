package check

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/internal/suggest"
)

// maxExpression bounds the text of an expression, in bytes.
const maxExpression = 4096

const form = "want SELECTOR [by (LABELS)] [STATISTIC] OP VALUE[UNIT], such as: ttft p99 < 450ms"

// requestMetrics are what package events reports of requests, and whether it is a rate or count, which has no
// statistic, or a distribution.
var requestMetrics = map[string]bool{
	"qps": true, "qps_all": true, "tps": true, "goodput": true, "issued": true, "completed": true, "succeeded": true,
	"failed": true, "in_flight": true,
	"ttft": false, "tpot": false, "latency": false, "latency_all": false, "isl": false, "osl": false,
}

// Parse reads one expression. Errors name it and what is wrong with it.
func Parse(text string) (Assertion, error) {
	p := parser{rest: text}
	d, err := Assertion{}, fmt.Errorf("it is longer than %d bytes", maxExpression)
	if len(text) <= maxExpression {
		d, err = p.demand()
	}
	if err != nil {
		return Assertion{}, fmt.Errorf("parse expression %q: %w", shorten(text), err)
	}
	d.Text = strings.Join(strings.Fields(text), " ")
	d.Name = d.Text
	return d, nil
}

func shorten(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}

// parser reads an expression from the left.
type parser struct{ rest string }

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// take removes a prefix.
func (p *parser) take(prefix string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return ok
}

// word removes what is of the given characters.
func (p *parser) word(ok func(c byte) bool) string {
	p.space()
	i := 0
	for i < len(p.rest) && ok(p.rest[i]) {
		i++
	}
	w := p.rest[:i]
	p.rest = p.rest[i:]
	return w
}

func nameByte(c byte) bool {
	return c == '_' || c == ':' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c >= 0x80
}

func (p *parser) demand() (d Assertion, err error) {
	if err := p.selector(&d); err != nil {
		return d, err
	}
	if err := p.grouping(&d); err != nil {
		return d, err
	}
	if err := p.statistic(&d); err != nil {
		return d, err
	}
	p.space()
	i := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(p.rest, op) })
	if i < 0 {
		return d, fmt.Errorf("no comparison where %q begins (known: %s); %s", shorten(p.rest), strings.Join(operators, " "),
			form)
	}
	d.Op = operators[i]
	p.take(d.Op)
	if err := p.limit(&d); err != nil {
		return d, err
	}
	return d, d.validate()
}

func (p *parser) selector(d *Assertion) error {
	name := p.word(nameByte)
	d.From, d.Metric = FromFamily, name
	if rest, ok := strings.CutPrefix(name, "derived:"); ok {
		d.From, d.Metric = FromDerived, rest
	} else if rest, ok := strings.CutPrefix(name, "requests:"); ok {
		d.From, d.Metric = FromRequests, rest
	} else if rest, ok := strings.CutPrefix(name, "explain:"); ok {
		d.From, d.Metric = FromExplain, rest
	} else if w, stat, ok := headline.Parse(name); ok {
		d.From, d.Metric = FromQuantity, w.Name
		d.Stat, _, _ = parseStat(stat)
	} else if _, ok := requestMetrics[name]; ok {
		d.From = FromRequests
	}
	if p.take("{") {
		if err := p.matchers(d); err != nil {
			return err
		}
	}
	if d.Metric == "" {
		return fmt.Errorf("no metric; %s", form)
	}
	if _, ok := requestMetrics[d.Metric]; d.From == FromRequests && !ok {
		return fmt.Errorf("unknown quantity of requests %q%s", d.Metric, suggest.Clause(d.Metric, sortedKeys(requestMetrics)))
	}
	return nil
}

// matchers reads the inside of braces, as PromQL has it: a quoted string alone is the name of the metric.
func (p *parser) matchers(d *Assertion) error {
	for first := true; !p.take("}"); first = false {
		if !first && !p.take(",") {
			return fmt.Errorf("no , or } where %q begins", shorten(p.rest))
		}
		if !first && p.take("}") {
			return nil
		}
		p.space()
		label, quoted, err := p.label()
		if err != nil {
			return err
		}
		m := Matcher{Label: label}
		for _, op := range []string{"=~", "!~", "!=", "="} {
			if m.Op == "" && p.take(op) {
				m.Op = op
			}
		}
		if m.Op == "" && quoted && d.Metric == "" {
			d.Metric = label
			continue
		}
		if m.Op == "" {
			return fmt.Errorf("label %s: no =, !=, =~ or !~ where %q begins", label, shorten(p.rest))
		}
		if m.Value, err = p.quoted(); err != nil {
			return fmt.Errorf("label %s: %w", label, err)
		}
		if m.Op == "=~" || m.Op == "!~" {
			if m.re, err = regexp.Compile("^(?s:" + m.Value + ")$"); err != nil {
				return fmt.Errorf("label %s: %w", label, err)
			}
		}
		if label == "__name__" && m.Op == "=" && d.Metric == "" {
			d.Metric = m.Value
			continue
		}
		d.Match = append(d.Match, m)
	}
	return nil
}

func (p *parser) label() (name string, quoted bool, err error) {
	if strings.HasPrefix(p.rest, `"`) {
		name, err = p.quoted()
		return name, true, err
	}
	if name = p.word(nameByte); name == "" {
		return "", false, fmt.Errorf("no label where %q begins", shorten(p.rest))
	}
	return name, false, nil
}

func (p *parser) quoted() (string, error) {
	p.space()
	q, err := strconv.QuotedPrefix(p.rest)
	if err != nil || q[0] == '`' && len(q) < 2 {
		return "", fmt.Errorf("no quoted value where %q begins", shorten(p.rest))
	}
	p.rest = p.rest[len(q):]
	return strconv.Unquote(q)
}

func (p *parser) grouping(d *Assertion) error {
	before := p.rest
	if word := p.word(nameByte); word != "by" {
		p.rest = before
		return nil
	}
	if !p.take("(") {
		return fmt.Errorf("by: want by (LABELS), by () for all series together")
	}
	d.Grouped, d.By = true, []string{}
	for first := true; !p.take(")"); first = false {
		if !first && !p.take(",") {
			return fmt.Errorf("by: no , or ) where %q begins", shorten(p.rest))
		}
		name, _, err := p.label()
		if err != nil {
			return fmt.Errorf("by: %w", err)
		}
		if slices.Contains(d.By, name) {
			return fmt.Errorf("by: %s is named twice", name)
		}
		d.By = append(d.By, name)
	}
	if d.From == FromRequests {
		return fmt.Errorf("by: requests are one population and have no labels")
	}
	return nil
}

func (p *parser) statistic(d *Assertion) error {
	p.space()
	end := strings.IndexAny(p.rest, "<>=!~")
	if end < 0 {
		return nil // what is missing is the comparison
	}
	words := strings.TrimSpace(p.rest[:end])
	p.rest = p.rest[end:]
	if words == "" {
		return nil
	}
	if d.From == FromExplain {
		d.Stat.Name = words
		return nil
	}
	s, ok, err := parseStat(strings.ReplaceAll(words, " ", ""))
	if err == nil && d.Stat.Name != "" {
		err = fmt.Errorf("%s has its statistic already, and then %q", d.Metric, words)
	}
	if err == nil && !ok {
		err = fmt.Errorf("unknown statistic %q%s; known: %s, pNN, share(VALUE)", words, suggest.Clause(words, plainStats),
			strings.Join(plainStats, ", "))
	}
	d.Stat = s
	return err
}

// limit reads what comes after the operator.
func (p *parser) limit(d *Assertion) error {
	text := strings.TrimSpace(p.rest)
	if d.From == FromExplain && d.Metric == verdict {
		d.Want.Word = text
		return nil
	}
	amount, tolerance, hasTolerance := text, "", false
	for _, sign := range []string{"±", "+-", "+/-"} {
		if a, b, ok := strings.Cut(text, sign); ok && !hasTolerance {
			amount, tolerance, hasTolerance = strings.TrimSpace(a), b, true
		}
	}
	if hasTolerance != (d.Op == Near) {
		return fmt.Errorf("%s and ±MARGIN belong together: ~= 100 ±10%%", Near)
	}
	var err error
	if hasTolerance {
		if d.Tolerance, err = parseMargin(tolerance); err != nil {
			return fmt.Errorf("±: %w", err)
		}
	}
	shift, ok := strings.CutPrefix(amount, "baseline")
	if !ok {
		d.Want.Value, d.Want.Unit, err = parseAmount(amount)
		return err
	}
	d.Want.Baseline = true
	if shift = strings.TrimSpace(shift); shift == "" {
		return nil
	}
	if shift[0] != '+' && shift[0] != '-' {
		return fmt.Errorf("after baseline %q: want baseline, baseline + 5%% or baseline - 10ms", shift)
	}
	if d.Want.Shift, err = parseMargin(shift[1:]); err != nil {
		return err
	}
	if shift[0] == '-' {
		d.Want.Shift.Value = -d.Want.Shift.Value
	}
	return nil
}

// validate finds what no run could make right.
func (d *Assertion) validate() error {
	switch d.From {
	case FromDerived:
		if d.Stat.Name != "" {
			return fmt.Errorf("a derived quantity has no statistic %s: it is one number", d.Stat)
		}
	case FromExplain:
		return d.validateExplained()
	case FromRequests:
		if len(d.Match) > 0 {
			return fmt.Errorf("requests have no labels to select by")
		}
		if plain := requestMetrics[d.Metric]; plain != (d.Stat.Name == "") {
			if plain {
				return fmt.Errorf("%s has no statistic %s: it is one number", d.Metric, d.Stat)
			}
			return fmt.Errorf("which statistic of %s? known: %s", d.Metric, strings.Join(statForms["requests"], ", "))
		}
		return d.validateRequests()
	case FromQuantity:
		return d.validateQuantity()
	default:
		if d.Stat.Name == "" && isDerived(d.Metric) {
			d.From = FromDerived
		} else if d.Stat.Name == "" {
			return fmt.Errorf("which statistic of %s? %s%s", d.Metric, statHelp(),
				suggest.Clause(d.Metric, headline.Spellings()))
		}
	}
	return nil
}

// requestUnits are the units of what requests report.
var requestUnits = map[string]string{"qps": "requests/s", "qps_all": "requests/s", "tps": "tokens/s",
	"goodput": "requests/s",
	"ttft":    "seconds", "tpot": "seconds", "latency": "seconds", "latency_all": "seconds", "isl": "tokens",
	"osl": "tokens"}

func (d *Assertion) validateRequests() error {
	if !slices.Contains([]string{"", "avg", "min", "max", "count", "p"}, d.Stat.Name) {
		return fmt.Errorf("%s has no statistic %s (known: %s)", d.Metric, d.Stat, strings.Join(statForms["requests"], ", "))
	}
	if d.Want.Baseline {
		return nil
	}
	unit := requestUnits[d.Metric]
	if d.Stat.Name == "count" {
		unit = ""
	}
	return d.fits(unit)
}

// fits reports why the limit cannot be one of a unit.
func (d *Assertion) fits(unit string) error {
	if unit == "seconds" && d.Want.Unit == "" && d.Want.Value != 0 {
		return errors.New(headline.NeedsUnit(d.Metric, d.Want.Value))
	}
	_, err := convert(d.Want.Value, d.Want.Unit, unit)
	return err
}

func statHelp() string {
	var out []string
	for _, of := range []string{"counter", "gauge", "histogram", "summary"} {
		out = append(out, "of a "+of+": "+strings.Join(statForms[of], " "))
	}
	return strings.Join(out, "; ")
}
