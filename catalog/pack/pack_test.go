package pack_test

import (
	"math"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog/pack"
	"github.com/scrapestat/scrapestat/catalog/quantity"
	"github.com/scrapestat/scrapestat/metric"
)

// problems reads and joins files, each with the name of its letter.
func problems(files ...string) string {
	var all []*pack.Pack
	var bad []pack.Problem
	for i, text := range files {
		packs, more := pack.Read(string(rune('a'+i))+".yaml", strings.NewReader(text))
		all, bad = append(all, packs...), append(bad, more...)
	}
	if bad == nil {
		_, bad = pack.Join(all...)
	}
	var out []string
	for _, p := range bad {
		out = append(out, p.Error())
	}
	return strings.Join(out, "\n")
}

const good = `pack: e
title: An engine
prefixes: ["e:", "old_e:"]
split: [model]
families:
  - {name: requests, type: counter, unit: requests, meaning: Requests.}
  - {name: queue, type: gauge, unit: requests, aggregate: sum, above: [0], meaning: Requests that wait.}
  - {name: wait_seconds, type: histogram, unit: seconds, aggregate: merge, meaning: Time in line.}
`

const quantities = good + "quantities:\n  latency:\n"

// Every mistake is told with file, line and column, and nothing else is.
func TestProblems(t *testing.T) {
	one := func(entry string) string { return quantities + "    - " + entry + "\n" }
	var ids []string
	for _, c := range pack.Canonicals() {
		ids = append(ids, c.ID)
	}
	fam := func(entry string) string { return good + "  - " + entry + "\n" }
	for _, c := range []struct{ file, want string }{
		{one("{name: wait, is: mean(wait_seconds), unit: seconds}"), ""},
		{one("{name: wait, is: 2 * increase(queue) / time}"),
			"a.yaml:11:28: quantity wait: increase() wants a counter; queue " +
				"is a gauge: use area, avg, changed, delta, first, last, low, peak, time_above"},
		{one(`{name: wait, is: 'rate(requests{a="b"}) + mean(c)'}`),
			"a.yaml:11:54: quantity wait: there is no family c"},
		{one(`{name: wait, is: "rate(requests{a=\"b\"}) + mean(c)"}`),
			"a.yaml:11:56: quantity wait: there is no family c"},
		{one("{name: wait, is: mean(wait_seconds), unit: tokens}"),
			"a.yaml:11:24: quantity wait: the formula gives seconds, which is not tokens"},
		{one("{name: a, is: b}\n    - {name: b, is: a}"),
			"a.yaml:11:21: quantity a: b: a: b is made of itself: b, a, b\n" +
				"a.yaml:12:21: quantity b: a: b: a is made of itself: a, b, a"},
		{one("{name: wait, is: rate(requests), when: named(x)}"), "a.yaml:11:52: quantity wait: there is no family x"},
		{one("{name: wait, is: rate(requests), iz: 1}"),
			`a.yaml:11:40: unknown key "iz" of a quantity (known: name, is, ` +
				"unit, better, canonical, headline, help, by, when, enabled, status, window_only, optional, native, at, " +
				"formula)"},
		{one("{is: rate(requests)}"), "a.yaml:11:7: quantity : needs a name"},
		{one("{name: wait}"), "a.yaml:11:7: quantity wait: needs is: a formula"},
		{one("{name: wait, is: rate(requests), formula: x}"),
			"a.yaml:11:7: quantity wait: formula: is written from what it is; leave it out"},
		{one("{name: wait, is: rate(requests), unit: parsecs}"), `a.yaml:11:7: quantity wait: unknown unit "parsecs"`},
		{one("{name: wait, is: rate(requests), status: missing}"),
			`a.yaml:11:7: quantity wait: status: "missing" is none of a value`},
		{one("{name: wait, is: rate(requests), better: more}"),
			`a.yaml:11:7: quantity wait: better: "more" must be higher, lower or neutral`},
		{one("{name: w, is: rate(requests)}\n    - {name: w, is: rate(requests)}"),
			"a.yaml:12:7: quantity w: is there twice"},
		{good + "quantities: {speed: []}\n",
			`a.yaml:9:14: quantities: "speed" must be one of other, throughput, latency, ` +
				"saturation, time_spent, cache, errors, efficiency, check"},
		{good + "checks: [{name: c, left: rate(requests), right: rate(requests)}]\n",
			"a.yaml:9:10: check c: needs a name, left, right and a tolerance above 0"},
		{good + "checks: [{name: c, left: rate(requests), right: rate(requests), tolerance: 1, edges: f}]\n",
			"a.yaml:9:86: check c: there are no edges f"},
		{good + "  - {name: requests, meaning: Again.}\n",
			`a.yaml:9:5: family "requests": is listed already, as e:requests of e`},
		{"families: [{name: a, meaning: M.}]", "a.yaml:1:1: needs a pack: the name of the engine"},
		{fam("{name: x}"), `a.yaml:9:5: family "x": needs a name and a meaning`},
		{fam("{name: x, meaning: M., type: dial}"), `a.yaml:9:5: family "x": unknown type "dial"`},
		{fam("{name: x, meaning: M., better: more}"),
			`a.yaml:9:5: family "x": better: "more" must be higher, lower or neutral`},
		{fam("{name: x, meaning: M., aggregate: most}"),
			`a.yaml:9:5: family "x": aggregate: "most" must be one of sum max mean rank0 merge never`},
		{fam("{name: x, meaning: M., moves: often}"),
			`a.yaml:9:5: family "x": moves: "often" must be one of arrival step token finish poll start age`},
		{fam("{name: x, meaning: M., traffic: maybe}"), `a.yaml:9:5: family "x": traffic: "maybe" must be yes or no`},
		{fam("{name: x, meaning: M., quality: bad}"),
			`a.yaml:9:5: family "x": quality: "bad" must be one of last_event lifetime`},
		{fam("{name: x, meaning: M., staleness: 2}"), `a.yaml:9:5: family "x": staleness: "2" is no duration such as 2s`},
		{fam("{name: x, meaning: M., canonical: speed}"),
			`a.yaml:9:5: family "x": canonical: unknown id "speed" (known: ` + strings.Join(ids, ", ") + ")"},
		{fam("{name: x, meaning: M., scales: {y: 2}}"),
			`a.yaml:9:5: family "x": scales: 2 of "y", which must be a positive factor of an alias`},
		{fam("{name: x, meaning: M., implied: {y: {a: b}}}"), `a.yaml:9:5: family "x": implied: "y" is no alias`},
		{fam("{name: 'x y', meaning: M.}"), `a.yaml:9:5: family "x y": "e:x y" is no name of a family`},
		{fam("{name: '/x(/', meaning: M.}"),
			"a.yaml:9:5: family \"/x(/\": error parsing regexp: missing closing ): `^(?:x()$`"},
		{fam("{name: '/x/', meaning: M., unit: seconds}"),
			`a.yaml:9:5: family "/x/": of a pattern only the meaning is told`},
		{one("{name: wait, is: rate(requests), canonical: speed}"),
			`a.yaml:11:7: quantity wait: canonical: unknown id "speed" (known: ` + strings.Join(ids, ", ") + ")"},
		{one("{name: wait, is: 'rate(requests{a=~\"(\"})'}"),
			"a.yaml:11:42: quantity wait: error parsing regexp: missing closing ): `^(?:()$`"},
		{one("{name: wait, is: mean(wait_seconds) + 1}"),
			`a.yaml:11:46: quantity wait: seconds and a number cannot be added up`},
		{"pack: e\nsentinels: [{families: [x], values: [[2, 1]]}]",
			`a.yaml:2:13: sentinels: needs families, and values: [[-1]] for one, [[5, 9]] for those from 5 to 9`},
		{"pack: e\nsentinels: [{families: [x], values: [[]]}]",
			`a.yaml:2:13: sentinels: needs families, and values: [[-1]] for one, [[5, 9]] for those from 5 to 9`},
		{"pack: e\nhints: [{code: a, text: T.}]",
			`a.yaml:2:9: hint a: needs a code, a text and a level: note, warning, error`},
		{"pack: e\nhints: [{code: a, level: note, text: T., run: slow}]",
			`a.yaml:2:9: hint a: run: "slow" must be one of silent, fast, hidden, failing, empty, json_list, or left out for ` +
				"a hint on bodies"},
		{"pack: e\ninputs: {slo: {speed_s: 1}}",
			`a.yaml:1:1: inputs: slo speed_s of 1 is none (positive seconds of ttft_s, itl_s, tpot_s, e2e_s, queue_s)`},
		{"pack: [", "a.yaml: line 1: did not find expected node content"},
		{"pack: e\ninputs: {peak_gb_s: .inf}", "a.yaml:1:1: inputs: a peak of +Inf"},
		{strings.Repeat("#\n", 1<<19) + "#", "a.yaml: larger than 1048576 bytes"},
	} {
		if got := problems(c.file); got != c.want {
			t.Errorf("%s\n%s\nwant\n%s", c.file[min(len(c.file), 3*len(good)/4):min(len(c.file), 900)], got, c.want)
		}
	}
	if got := problems(good, "pack: f\nfamilies: [{name: 'old_e:queue', meaning: Mine.}]"); !strings.Contains(got,
		`b.yaml:1:21: family "old_e:queue": is listed already, as e:queue of e`) &&
		!strings.Contains(got, `b.yaml:2:12: family "old_e:queue": is listed already, as e:queue of e`) {
		t.Errorf("two packs with one name: %s", got)
	}
}

// A name that Ray makes of another family's is nobody else's.
func TestWrapped(t *testing.T) {
	const other = "pack: f\nfamilies: [{name: ray_e_queue, meaning: Mine.}]"
	if got := problems(good, other); got != `b.yaml:2:12: family "ray_e_queue": is the name of e:queue of e under ray_` {
		t.Error(got)
	}
}

// A later pack of the same name replaces quantities and adds some; formulas read
// families of other engines, under whatever file they stand.
func TestJoin(t *testing.T) {
	var all []*pack.Pack
	for _, text := range []string{good + "quantities: {latency: [{name: wait, is: mean(wait_seconds), unit: seconds}]}\n",
		"pack: e\nquantities: {errors: [{name: wait, is: rate(requests)}, {name: more, is: wait / rate(g.n)}]}\n" +
			"---\npack: g\nfamilies: [{name: n, type: counter, meaning: N.}]"} {
		packs, bad := pack.Read("x", strings.NewReader(text))
		if bad != nil {
			t.Fatal(bad)
		}
		all = append(all, packs...)
	}
	set, bad := pack.Join(all...)
	if bad != nil {
		t.Fatal(bad)
	}
	var texts []string
	for _, p := range set.Packs() {
		for _, q := range p.Quantities {
			texts = append(texts, q.Name+" = "+q.Text+", "+q.Category.String())
		}
	}
	if got := strings.Join(texts,
		"; "); got != "wait = e:requests / time, errors; more = e:requests / time / (n / time), errors" {
		t.Error(got)
	}
	f, ok := set.Family("old_e:requests_total")
	if !ok || f.Name != "e:requests" || f.Aggregate != quantity.AggregateByType {
		t.Errorf("%+v", f)
	}
}

// What a family says of its unit and of its parts is the same for everybody who asks.
func TestSecondsAndWhole(t *testing.T) {
	f := &pack.Family{Name: "e:wait_us", Unit: "microseconds", Aliases: []string{"e:wait"},
		Scales: map[string]float64{"e:wait": 1000}, Only: []metric.Label{{Name: "priority"}}}
	for _, c := range []struct {
		f    *pack.Family
		name string
		want float64
	}{{f, "e:wait_us", 1e-6}, {f, "e:wait", 1e-3}, {&pack.Family{Name: "w_milliseconds"}, "w_milliseconds", 1e-3},
		{&pack.Family{Name: "w"}, "w", 1}, {&pack.Family{Name: "w", Unit: "tokens"}, "w", 0}} {
		if got := c.f.Seconds(c.name); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	part := metric.NewLabels(metric.Label{Name: "priority", Value: "1"})
	var unknown *pack.Family
	if !f.Whole(metric.Labels{}) || f.Whole(part) || !unknown.Whole(part) {
		t.Error("a series with a priority is part of the one without, and all of an unknown family are whole")
	}
}
