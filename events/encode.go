package events

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/scrapestat/scrapestat/metric"
)

// SchemaReport is the version of the JSON form of a report.
const SchemaReport = "1"

// The weightings of the time per output token.
const (
	WeightRequest = "request" // one value per request
	WeightToken   = "token"   // each value as often as the request has tokens
	WeightBoth    = "both"
)

// Weights are the values of Report.Weight.
var Weights = []string{WeightRequest, WeightToken, WeightBoth}

// MarshalJSON writes the report for machines: names with units, null for what is missing with the reason beside it,
// percentiles by their keys.
func (r *Report) MarshalJSON() ([]byte, error) {
	ns := func(v int64) *int64 {
		if v == 0 {
			return nil
		}
		return &v
	}
	out := struct {
		Schema      string           `json:"schema_version"`
		Summary     string           `json:"summary,omitempty"`
		Window      string           `json:"window"`
		From        *int64           `json:"from_ns"`
		To          *int64           `json:"to_ns"`
		Duration    Value            `json:"duration_s"`
		Issued      *int             `json:"issued"`
		Completed   *int             `json:"completed"`
		Succeeded   *int             `json:"succeeded"`
		Failed      *int             `json:"failed"`
		InFlight    *int             `json:"in_flight"`
		Outside     *int             `json:"outside_window"`
		QPS         Value            `json:"qps"`
		QPSAll      Value            `json:"qps_all"`
		TPS         Value            `json:"tps"`
		Goodput     Value            `json:"goodput"`
		GoodMissing int              `json:"goodput_unjudged"`
		TTFT        *Distribution    `json:"ttft_ns"`
		Latency     *Distribution    `json:"latency_ns"`
		LatencyAll  *Distribution    `json:"latency_all_ns"`
		PerToken    string           `json:"tpot_denominator"`
		TPOT        *Distribution    `json:"tpot_ns,omitempty"`
		TPOTTokens  *Distribution    `json:"tpot_token_weighted_ns,omitempty"`
		ISL         *Distribution    `json:"isl_tokens"`
		OSL         *Distribution    `json:"osl_tokens"`
		Finish      []Count          `json:"finish_reasons"`
		Errors      []Count          `json:"errors"`
		Sources     []Count          `json:"token_sources"`
		Warnings    []metric.Warning `json:"warnings"`
	}{SchemaReport, r.Summary, r.Window, ns(r.FromNS), ns(r.ToNS), r.Duration, count(r.Issued), count(r.Completed),
		count(r.Succeeded), count(r.Failed), count(r.InFlight), count(r.Outside),
		r.QPS, r.QPSAll, r.TPS, r.Goodput, r.GoodMissing, &r.TTFT, &r.Latency, &r.LatencyAll, r.PerToken, &r.TPOT,
		&r.TPOTTokens, &r.ISL, &r.OSL, r.Finish, r.Errors, r.TokenSources, r.Warnings}
	if r.Weight == WeightToken {
		out.TPOT = nil
	}
	if r.Weight == WeightRequest {
		out.TPOTTokens = nil
	}
	return json.Marshal(out)
}

// MarshalJSON writes the statistics; all are null when there is no value.
func (d *Distribution) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	field := func(name string, v float64, has bool) {
		b.WriteString(`,"` + name + `":`)
		if has {
			b.Write(strconv.AppendFloat(nil, v, 'g', -1, 64))
		} else {
			b.WriteString("null")
		}
	}
	b.WriteString(`{"n":` + strconv.Itoa(d.N) + `,"missing":` + strconv.Itoa(d.Missing))
	if d.Reason != "" {
		b.WriteString(`,"reason":`)
		b.Write(quoteJSON(d.Reason))
	}
	field("total", d.Total, d.N > 0)
	field("mean", d.Mean, d.N > 0)
	field("min", d.Min, d.N > 0)
	field("max", d.Max, d.N > 0)
	field("std_dev", d.StdDev.V, d.StdDev.Known)
	field("pop_std_dev", d.PopStdDev, d.N > 0 && !math.IsNaN(d.PopStdDev))
	b.WriteString(`,"percentile_method":"` + d.Method + `","percentiles":`)
	quantiles(&b, d.Quantiles, func(q Quantile) (float64, bool) { return q.Value, !q.Missing })
	b.WriteString(`,"early_stopping":`)
	quantiles(&b, d.Quantiles, func(q Quantile) (float64, bool) { return q.Early, q.HasEarly })
	b.WriteByte('}')
	return b.Bytes(), nil
}

func quantiles(b *bytes.Buffer, list []Quantile, of func(Quantile) (float64, bool)) {
	b.WriteByte('{')
	for i, q := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + q.Key + `":`)
		if v, ok := of(q); ok {
			b.Write(strconv.AppendFloat(nil, v, 'g', -1, 64))
		} else {
			b.WriteString("null")
		}
	}
	b.WriteByte('}')
}

// MarshalJSON writes the verdict for machines. Times are nanoseconds.
func (v Validation) MarshalJSON() ([]byte, error) {
	type outcome struct {
		Target   string  `json:"target"`
		Metric   string  `json:"metric"`
		Stat     string  `json:"statistic,omitempty"`
		Op       string  `json:"op"`
		Value    float64 `json:"value"`
		Verdict  Verdict `json:"verdict"`
		Measured Value   `json:"measured"`
		Margin   Value   `json:"margin"`
	}
	all := []outcome{}
	for _, o := range v.Outcomes {
		t := o.Target
		all = append(all, outcome{t.Text, t.Metric, t.Stat, t.Op, t.Value, o.Verdict, o.Measured, o.Margin})
	}
	return json.Marshal(struct {
		Schema  string    `json:"schema_version"`
		Verdict Verdict   `json:"verdict"`
		Targets []outcome `json:"targets"`
	}{SchemaReport, v.Verdict, all})
}
