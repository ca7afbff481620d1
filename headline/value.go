package headline

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/histest"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// Value is a row of one run.
type Value struct {
	Row
	Value     float64 // NaN where there is none
	Low, High float64 // provable bounds of a percentile, NaN where there are none
	Estimator string  // of a percentile
	// Missing is why there is no value, Unsure why there is one that must not be judged; "" for neither.
	Missing, Unsure string
	Status          catalog.Status // of what it was made of; one that is certain where all of it was
	// Num and Den are the sums of the complete slices whose quotient is the value.
	Num, Den []float64
	// Bounds are those of the buckets a percentile comes from, the last one +Inf; Cum are the cumulative counts of the
	// complete slices.
	Bounds []float64
	Cum    [][]float64
	// Pooled are the cumulative counts of the window, parallel to Bounds; Flags are those of the estimate.
	Pooled []float64
	Flags  histest.Flags
	// Count is how many observations, or of a rate what was counted, the window has; 0 where that is not known.
	Count float64
	// Events and Trials are the counts of a share.
	Events, Trials float64
	Quantity       catalog.Quantity
	Names          []string // of the families or derived quantities it was made of
}

// Group is the headline of an engine and a model of a run.
type Group struct {
	Engine, Model string
	Values        []Value // judged: rows of which the run has the quantity
	Load, Context []Value
	More          []Value // what else was asked for
}

// reader reads one run.
type reader struct {
	run     *summary.Run
	catalog *catalog.Catalog
	derived []*summary.Derived // of all endpoints of an engine together
	pools   map[string][]pool  // histograms by canonical id
	models  []string           // labels that name a model
}

// pool is the series of a histogram that are of one engine and model.
type pool struct {
	engine, model, family string
	metric                int
	series                []*summary.Series
}

// key is an engine with a model.
type key struct{ engine, model string }

// Of returns the headlines of a run, the most specific engine first; nil when no quantity of it has a canonical id.
// Rows asked for beside them are in Group.More.
func Of(run *summary.Run, c *catalog.Catalog, more ...Row) []Group {
	own := *run
	own.Options.Catalog = c
	r := &reader{run: &own, catalog: c, pools: map[string][]pool{}, models: modelLabels(c)}
	r.gather()
	var out []Group
	for _, k := range r.keys() {
		g := Group{Engine: k.engine, Model: k.model, Values: r.values(k, Rows()), Load: r.values(k, load()),
			Context: r.values(k, context()), More: r.values(k, more)}
		itl := slices.ContainsFunc(g.Values, func(v Value) bool { return v.ID == "itl" })
		twin := func(v Value) bool { return v.ID == "tpot" && itl }
		g.Values, g.Context = slices.DeleteFunc(g.Values, twin), slices.DeleteFunc(g.Context, twin)
		if len(g.Values) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// gather finds the histograms and derived quantities of the run that have an id.
func (r *reader) gather() {
	for i := range r.run.Metrics {
		m := &r.run.Metrics[i]
		f, ok := r.catalog.Family(m.Name)
		if !ok || f.Canonical == "" || !slices.ContainsFunc(m.Series, func(s summary.Series) bool {
			return s.Histogram != nil
		}) {
			continue
		}
		for _, g := range r.run.Pools(m, r.models) {
			model := r.modelOf(g.Labels.Get)
			r.pools[f.Canonical] = append(r.pools[f.Canonical], pool{r.engine(f.Engine), model, m.Name, i, g.Series})
		}
	}
	from := r.run.Derived
	if len(r.run.Combined) > 0 && r.run.Combined[0].Labels.Len() == 0 {
		from = r.run.Combined[0].Derived
	}
	for i := range from {
		r.derived = append(r.derived, &from[i])
	}
}

// modelLabels are the labels that name a model.
func modelLabels(c *catalog.Catalog) []string {
	return slices.DeleteFunc(c.KeptLabels(), func(l string) bool { return !strings.HasPrefix(l, "model") })
}

func (r *reader) modelOf(get func(string) (string, bool)) string {
	for _, l := range r.models {
		if v, ok := get(l); ok {
			return v
		}
	}
	return ""
}

// engine is the server that a pack or engine of the catalog is a part of.
func (r *reader) engine(name string) string {
	best := ""
	for _, p := range r.catalog.Servers() {
		if name == p.Name {
			return name
		}
		if strings.HasPrefix(name, p.Name+"-") && len(p.Name) > len(best) {
			best = p.Name
		}
	}
	return cmp.Or(best, name)
}

// keys returns the engines and models that have what requests are judged by. What an engine contains, such as the
// engines of the stages of a pipeline, has no headline of its own: all its endpoints are those of the other one.
func (r *reader) keys() []key {
	at := map[key]map[int]bool{}
	see := func(k key, endpoint int) {
		if at[k] == nil {
			at[k] = map[int]bool{}
		}
		at[k][endpoint] = true
	}
	for _, id := range []string{"ttft_s", "e2e_s"} {
		for _, p := range r.pools[id] {
			for _, s := range p.series {
				see(key{p.engine, p.model}, s.Endpoint)
			}
		}
	}
	for i := range r.run.Derived {
		d := &r.run.Derived[i]
		whole := slices.Contains([]string{"request_rate", "output_tok_s", "e2e_mean_s"}, d.Canonical)
		if whole && d.Status != catalog.Missing {
			model := r.modelOf(d.Labels.Get)
			see(key{r.engine(d.Pack), model}, d.Endpoint)
		}
	}
	order := slices.SortedFunc(maps.Keys(at), func(a, b key) int {
		return cmp.Or(r.catalog.CompareServers(a.engine, b.engine), cmp.Compare(a.model, b.model))
	})
	owner := map[int]string{} // by endpoint
	return slices.DeleteFunc(order, func(k key) bool {
		if k.model == "" && slices.ContainsFunc(order, func(o key) bool { return o.engine == k.engine && o.model != "" }) {
			return true // what is not told apart by model belongs to the one that is
		}
		own := false
		for endpoint := range at[k] {
			owner[endpoint] = cmp.Or(owner[endpoint], k.engine)
			own = own || owner[endpoint] == k.engine
		}
		return !own
	})
}

// values reads rows of an engine and model; those that the run has nothing of are left out.
func (r *reader) values(k key, rows []Row) (out []Value) {
	for _, row := range rows {
		v := Value{Row: row, Value: math.NaN(), Low: math.NaN(), High: math.NaN(), Quantity: row.quantity(k.engine)}
		if p := r.pool(k, row.family); p != nil {
			v.distribution(r, p)
		} else if !v.fromDerived(r, k) {
			continue
		}
		if v.Missing == "" && (math.IsNaN(v.Value) || math.IsInf(v.Value, 0) || v.Value < 0) {
			v.Missing = "not a number from 0 up"
		}
		out = append(out, v)
	}
	return out
}

// pool returns the histogram of a quantity; of several families the first.
func (r *reader) pool(k key, id string) *pool {
	list := r.pools[id]
	i := slices.IndexFunc(list, func(p pool) bool { return p.engine == k.engine && p.model == k.model })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// doubt notes of a value what its increases are sure of.
func (v *Value) doubt(s catalog.Status) {
	if s == catalog.Refused {
		v.Missing = "refused: several processes answered, which nothing tells apart"
	} else if !s.Certain() {
		v.Status = s
		v.Unsure = s.String() + ": it is not judged"
	}
}

// distribution reads a row of a histogram.
func (v *Value) distribution(r *reader, p *pool) {
	v.Names = []string{p.family}
	for _, s := range p.series {
		v.doubt(summary.StatusOf(s.Increase.Status))
		if s.Histogram == nil {
			v.Missing = cmp.Or(v.Missing, "a series of it has no distribution")
		}
	}
	if v.Missing != "" {
		return
	}
	if v.Stat == "mean" {
		v.mean(p)
		return
	}
	v.percentile(r, p)
}

// mean is the sum of all observations by their number.
func (v *Value) mean(p *pool) {
	sum, count := 0.0, 0.0
	num, den := map[int64]float64{}, map[int64]float64{}
	for _, s := range p.series {
		h := s.Histogram
		if h.NoSum {
			v.Missing = "the server sends no sum"
			return
		}
		sum, count = sum+h.Sum, count+float64(h.Count)
		for _, slice := range h.Slices {
			if !slice.Partial {
				num[slice.StartNS] += slice.Sum
				den[slice.StartNS] += float64(slice.Count)
			}
		}
	}
	if !(count > 0) {
		v.Missing = "no observations in the window"
		return
	}
	v.Value, v.Count = sum/count, count
	for _, at := range slices.Sorted(maps.Keys(num)) {
		v.Num, v.Den = append(v.Num, num[at]), append(v.Den, den[at])
	}
}

// percentile is that of all observations together: what the estimator of the run says where it knows, else linear in
// the counts.
func (v *Value) percentile(r *reader, p *pool) {
	q, ok := v.Quantile()
	if !ok {
		return
	}
	first := p.series[0].Histogram
	cum, all, sum, late := make([]float64, len(first.Bounds)), 0.0, 0.0, int64(0)
	slicesOf := make(map[int64][]float64, len(first.Slices))
	for _, s := range p.series {
		h := s.Histogram
		if len(h.Buckets) == 0 || len(h.Buckets) != len(first.Bounds) || !slices.EqualFunc(h.Bounds, first.Bounds,
			func(a, b normalize.Bucket) bool { return a.Upper == b.Upper }) {
			v.Missing = "its series have other buckets, or none"
			return
		}
		for i := range cum {
			cum[i] += float64(h.Buckets[i].Count)
		}
		all, sum, late = all+float64(h.Count), sum+h.Sum, late+h.Late
		v.addSlices(h, slicesOf)
	}
	if v.Count = all; !(all > 0) {
		v.Missing = "no observations in the window"
		return
	}
	for _, b := range first.Bounds {
		v.Bounds = append(v.Bounds, b.Upper)
	}
	for _, at := range slices.Sorted(maps.Keys(slicesOf)) {
		v.Cum = append(v.Cum, slicesOf[at])
	}
	v.Pooled = cum
	e, ok := r.estimate(p, q)
	if v.Estimator = cmp.Or(r.run.Options.Estimator, histest.Polynomial); !ok {
		v.Estimator = histest.Linear
		e, ok = linear(v.Bounds, cum, sum, q, late)
	}
	if v.Flags = e.Flags; e.Flags&histest.Recorded != 0 {
		v.Estimator = "requests"
	}
	if v.Value, v.Low, v.High = e.Value, e.Low, e.High; !ok {
		v.Value, v.Missing = math.NaN(), "no estimate of "+v.Stat
	} else if e.Flags&histest.Overflow != 0 {
		v.Unsure = cmp.Or(v.Unsure, "beyond the last bound: it is not judged")
	}
}

func (v *Value) addSlices(h *normalize.Histogram, to map[int64][]float64) {
	for _, slice := range h.Slices {
		if slice.Partial || len(slice.Counts) != len(h.Bounds) {
			continue
		}
		row := to[slice.StartNS]
		if row == nil {
			row = make([]float64, len(h.Bounds))
			to[slice.StartNS] = row
		}
		for i, n := range slice.Counts {
			row[i] += float64(n)
		}
	}
}

// estimate is what the run's estimator says of a percentile.
func (r *reader) estimate(p *pool, q float64) (histest.Estimate, bool) {
	at := slices.Index(r.run.Options.Quantiles, q)
	h := p.series[0].Histogram
	if len(p.series) > 1 {
		h = nil
		for i := range r.run.Latencies {
			l := &r.run.Latencies[i]
			if model := r.modelOf(l.Labels.Get); l.Metric == p.metric && model == p.model && l.Series == len(p.series) {
				h = l.Histogram
			}
		}
	}
	if at < 0 || h == nil || at >= len(h.Quantiles) {
		return histest.Estimate{}, false
	}
	return h.Quantiles[at], true
}

// linear estimates a percentile of cumulative counts.
func linear(bounds, cum []float64, sum, q float64, late int64) (histest.Estimate, bool) {
	n := len(bounds) - 1
	if n < 1 || !math.IsInf(bounds[n], 1) {
		return histest.Estimate{}, false
	}
	e, err := histest.New(histest.Linear, bounds[:n])
	if err != nil {
		return histest.Estimate{}, false
	}
	total := &histest.Delta{Bounds: bounds[:n], Cum: cum[:n], Inf: cum[n], HasInf: true, Count: cum[n], Sum: sum}
	list, ok := e.Quantiles(nil, total, []float64{q})
	if !ok || len(list) == 0 {
		return histest.Estimate{}, false
	}
	list[0].Clamp()
	if total.Late = late; late > 0 {
		wide, _ := e.Quantiles(nil, total, []float64{q})
		list[0].Low, list[0].High = wide[0].Low, wide[0].High
	}
	return list[0], true
}

// fromDerived reads a row of a derived quantity; false when the run has none. Those of several scopes of one model are
// added up.
func (v *Value) fromDerived(r *reader, k key) bool {
	if v.derived == "" {
		return false
	}
	var list []*summary.Derived
	for _, d := range r.derived {
		model := r.modelOf(d.Labels.Get)
		named := d.Canonical == v.derived || d.Canonical == "" && d.Name == v.derived
		if named && d.Status != catalog.Missing && (r.engine(d.Pack) == k.engine || v.derived == "j_per_token") &&
			(model == k.model || model == "") && !slices.ContainsFunc(list, func(x *summary.Derived) bool {
			return x.Name != d.Name
		}) {
			list = append(list, d)
		}
	}
	if len(list) == 0 {
		return false
	}
	v.addUp(list)
	return true
}

// addUp makes the value of a quantity that is there once, or for several scopes.
func (v *Value) addUp(list []*summary.Derived) {
	rate, num, den := strings.HasSuffix(v.Unit, "/s"), 0.0, 0.0
	parts := true
	for _, d := range list {
		v.doubt(d.Status)
		if !slices.Contains(v.Names, d.Name) {
			v.Names = append(v.Names, d.Name)
		}
		if d.Status == catalog.ZeroDenominator {
			v.Missing = cmp.Or(v.Missing, d.Status.String())
		}
		parts = parts && d.HasParts
		if num += d.Numerator; rate {
			den = d.Denominator
		} else {
			den += d.Denominator
		}
	}
	if v.Missing != "" {
		return
	}
	switch {
	case len(list) == 1:
		if v.Value = list[0].Value; v.Unsure != "" {
			v.Low, v.High = list[0].Low, list[0].High
		}
	case parts && den > 0:
		v.Value = num / den
	default:
		v.Missing = "of several parts, which cannot be added up"
		return
	}
	if v.Count = num; v.Share {
		v.Events, v.Trials = num, den
	}
	v.sliced(list, rate)
}

// sliced adds the complete slices.
func (v *Value) sliced(list []*summary.Derived, rate bool) {
	n := len(list[0].Slices)
	num, den := make(map[int64]float64, n), make(map[int64]float64, n)
	for _, d := range list {
		for _, s := range d.Slices {
			seconds := float64(s.EndNS-s.StartNS) / 1e9
			switch {
			case s.Partial || s.Status == catalog.Missing || s.Status == catalog.Refused:
			case d.HasParts && (s.Denominator != 0 || s.Status == catalog.ZeroDenominator):
				num[s.StartNS] += s.Numerator
				if rate {
					den[s.StartNS] = s.Denominator
				} else {
					den[s.StartNS] += s.Denominator
				}
			case s.Status.Defined():
				num[s.StartNS] += s.Value * seconds
				den[s.StartNS] = seconds
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(num)) {
		v.Num, v.Den = append(v.Num, num[at]), append(v.Den, den[at])
	}
}
