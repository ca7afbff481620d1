package export

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/internal/parquetwriter"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/summary"
)

// labelNames gives each label a column that equals no other, also for a reader that
// folds case: its own name where that is free, else label_NAME. Of labels that differ in
// case alone the one with most small letters keeps its name.
func labelNames(labels map[string]bool, fixed ...string) map[string]string {
	taken, out := map[string]bool{}, map[string]string{}
	for _, name := range fixed {
		taken[strings.ToLower(name)] = true
	}
	order := slices.Sorted(maps.Keys(labels))
	slices.Reverse(order) // small letters come after large ones
	for _, name := range order {
		if key := strings.ToLower(name); !taken[key] {
			taken[key], out[name] = true, name
		}
	}
	for _, name := range order {
		column := "label_" + name
		for ; out[name] == "" && taken[strings.ToLower(column)]; column += "_" {
		}
		if out[name] == "" {
			taken[strings.ToLower(column)], out[name] = true, column
		}
	}
	return out
}

// renamed lists the columns that do not have the name of their label, with that.
func renamed(columns map[string]string) map[string]string {
	out := map[string]string{}
	for name, column := range columns {
		if name != column {
			out[column] = name
		}
	}
	return out
}

// csvFixed are the columns of a section that are no labels.
func csvFixed(typ metric.Type) []string {
	stats, last := columnsOf(typ)
	return append([]string{"Endpoint", "Type", "Metric", "Unit", "Description", last}, stats...)
}

// LabelNotes warns of labels that stand under another name in columns of the formats,
// as that of the label is taken.
func LabelNotes(r *summary.Run, formats []string, o Options) []metric.Warning {
	all, byType := map[string]bool{}, map[metric.Type]map[string]bool{}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		for j := range m.Series {
			for name := range m.Series[j].Labels.All() {
				if exportedType(m.Type) {
					all[parquetwriter.ValidText(name)] = true
				}
				if byType[m.Type] == nil {
					byType[m.Type] = map[string]bool{}
				}
				byType[m.Type][name] = byType[m.Type][name] || !isInfo(m)
			}
		}
	}
	columns := map[string]string{}
	if slices.Contains(formats, "parquet") && isAIPerfLayout(r, o) {
		maps.Copy(columns, renamed(labelNames(all, aiperfFixed...)))
	}
	for typ, names := range byType {
		if maps.DeleteFunc(names, func(_ string, column bool) bool { return !column }); slices.Contains(formats, "csv") {
			maps.Copy(columns, renamed(labelNames(names, csvFixed(typ)...)))
		}
	}
	if len(columns) == 0 {
		return nil
	}
	var list []string
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		list = append(list, fmt.Sprintf("%q is %q", columns[column], column))
	}
	return []metric.Warning{{Code: "labels_renamed", Text: metric.Clean("labels whose name a column has already, or that "+
		"differ in case alone, have columns of another name: "+strings.Join(list, ", "), 2000)}}
}
