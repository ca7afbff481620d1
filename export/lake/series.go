package lake

import (
	"cmp"
	"errors"
	"math"

	"github.com/scrapestat/scrapestat/continuity"
	"github.com/scrapestat/scrapestat/internal/column"
	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// series writes table series.
func (a *adder) series() error {
	out, err := a.create(a.folder("series") + "/part-00000.parquet")
	if err != nil {
		return err
	}
	defer out.file.Abort()
	columns := seriesColumns()
	stream, err := parquetwriter.NewStream(out, columns, a.createdBy(), a.metadata("series"), serID)
	if err != nil {
		return err
	}
	g := parquetwriter.NewGroup(columns)
	units := map[metric.Family]string{}
	for _, metrics := range [][]summary.Metric{a.run.Warmup, a.run.Metrics} {
		for i := range metrics {
			units[metric.Family{Name: metrics[i].Name, Type: metrics[i].Type}] = metrics[i].ShownUnit()
		}
	}
	for id, e := range a.entries {
		f := e.family()
		a.seriesRow(g, id, e, cmp.Or(units[metric.Family{Name: f.Name, Type: f.Type}], f.Unit))
		if g.Columns[serID].Rows == groupRows {
			if err := stream.Add(g); err != nil {
				return err
			}
			g.Reset()
		}
	}
	if err := errors.Join(stream.Add(g), stream.End()); err != nil {
		return err
	}
	return a.finish(out, stream.Rows())
}

func (a *adder) seriesRow(g *parquetwriter.Group, id int, e *entry, unit string) {
	f, s, endpoint := e.family(), e.seen(), &a.run.Endpoints[e.target.endpoint]
	text := func(column int, v string) {
		if v == "" {
			g.Columns[column].Null(1)
			return
		}
		g.Columns[column].Run(g.Columns[column].Text(v), 1)
	}
	for column, v := range map[int]int64{serID: int64(id), serGeneration: int64(e.generation),
		serTarget: int64(e.target.endpoint), serFirst: s.firstNS, serLast: s.lastNS} {
		g.Columns[column].Run(uint64(v), 1)
	}
	for column, v := range map[int]string{serMetric: f.Name, serType: f.Type.String(), serUnit: unit,
		serURL: endpoint.URL, serName: endpoint.Name, serStatus: cmp.Or(e.status, continuity.OK.String())} {
		text(column, v)
	}
	var keys, values, bounds, above, les []uint64
	for name, value := range e.target.dict.Series[e.series].Labels.All() {
		keys = append(keys, g.Columns[serLabelKey].Text(name))
		values = append(values, g.Columns[serLabelValue].Text(value))
	}
	for _, id := range e.bounds() {
		slot := &e.target.dict.Slots[id]
		bounds = append(bounds, math.Float64bits(slot.Bound))
		if slot.Role == metric.RoleNative {
			above = append(above, math.Float64bits(slot.Lower))
		} else {
			les = append(les, g.Columns[serLEText].Text(slot.Text))
		}
	}
	for column, list := range map[int][]uint64{serLabelKey: keys, serLabelValue: values, serBounds: bounds,
		serAbove: above, serLEText: les} {
		g.Columns[column].List(list, 1)
	}
	g.Columns[serOrigin].Add(s.origin)
	born := uint64(0)
	if _, ok := e.target.adjustment.Born(e.series); ok {
		born = 1
	}
	g.Columns[serBorn].Run(born, 1)
}

// bounds are the slots of the entry's buckets, in the order of the lists of its samples.
func (e *entry) bounds() []int32 {
	if b := e.buckets(); b != nil {
		return b
	}
	var native []int32
	for _, id := range column.SamplesOf(nil, &e.target.dict, e.series) {
		if e.target.dict.Slots[id].Role == metric.RoleNative {
			native = append(native, id)
		}
	}
	return native
}
