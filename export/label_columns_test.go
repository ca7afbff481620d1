package export_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/normalize"
)

// TestHardening has a finding by the number that package faults lists: a label whose
// name is that of a column, or of another label but for case, is kept and told apart.
func TestHardening(t *testing.T) {
	t.Run("K23", func(t *testing.T) {
		p := newTape("http://a/metrics")
		fixed := []string{"endpoint_url", "metric_name", "metric_type", "unit", "description", "timestamp_ns", "value", "sum",
			"count", "bucket_le", "bucket_count"}
		var labels []string
		for _, name := range append(slices.Clone(fixed), "Model", "model", "label_value", "Value") {
			labels = append(labels, name, "of "+name)
		}
		other := slices.Clone(labels)
		other[slices.Index(other, "of value")] = "differs"
		for at := range int64(3) {
			p.poll(1e9+at*1e9, gaugePoint("g", 1, labels...), gaugePoint("g", 2, other...))
		}
		p.poll(5e9, histogramPoints("h", 1, []float64{1, 2, 3}, "count", "of count", "Count", "of Count")...)
		r := runOf(0, 6e9, p)
		data := writeAIPerf(t, r, p)
		if dir := os.Getenv("SCRAPESTAT_K23"); dir != "" { // for readers of other languages
			if err := os.WriteFile(dir, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, rows := readTable(t, data)
		columns := columnsOf(f)
		folded := map[string]bool{}
		for _, c := range columns {
			folded[strings.ToLower(c)] = true
		}
		if len(folded) != len(columns) || !slices.Equal(columns[:6], fixed[:6]) ||
			!slices.Equal(columns[len(columns)-5:], fixed[6:]) {
			t.Errorf("columns %q", columns)
		}
		distinct := map[string]bool{}
		for _, row := range rows {
			all := ""
			for i, v := range row {
				if i != 5 && i < len(row)-5 {
					all += v.String() + "|"
				}
			}
			distinct[all] = true
		}
		want := map[string]string{"label_value": "of label_value", "label_Value": "", "model": "of model",
			"label_Model": "of Model", "label_value_": "of value", "label_Value__": "of Value", "label_count": "of count",
			"label_timestamp_ns": "of timestamp_ns", "label_endpoint_url": "of endpoint_url"}
		for column, text := range want {
			i := slices.Index(columns, column)
			if i < 0 != (text == "") || i >= 0 && rows[0][i].String() != text {
				t.Errorf("column %q of %q has not %q", column, columns, text)
			}
		}
		if len(distinct) != 3 {
			t.Errorf("%d series can be told apart, want 3: %q", len(distinct), slices.Collect(maps.Keys(distinct)))
		}
		names, _ := f.Lookup("scrapestat.labels")
		if !strings.Contains(names, `"label_value_":"value"`) || !strings.Contains(names, `"label_Model":"Model"`) {
			t.Errorf("the file says %s", names)
		}
		for i := range r.Metrics { // a series without statistics is no row
			for j := range r.Metrics[i].Series {
				x := &r.Metrics[i].Series[j]
				x.Gauge, x.Histogram = &normalize.Gauge{N: 3}, &normalize.Histogram{Count: 1}
			}
		}
		var sheet bytes.Buffer
		headers := 0
		if err := export.CSV(&sheet, r, export.Options{}); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(sheet.String(), "\n") {
			if !strings.HasPrefix(line, "Endpoint,Type") {
				continue
			}
			headers++
			seen := map[string]bool{}
			for _, c := range strings.Split(strings.ToLower(line), ",") {
				if seen[c] {
					t.Errorf("two columns %s in %s", c, line)
				}
				seen[c] = true
			}
		}
		if headers != 2 {
			t.Errorf("%d sections of the CSV, want one of gauges and one of histograms", headers)
		}
		w := fmt.Sprint(export.LabelNotes(r, []string{"csv", "parquet"}, export.Options{}))
		if !strings.Contains(w, `"value" is "label_value_"`) || !strings.Contains(w, `"Model" is "label_Model"`) ||
			export.LabelNotes(r, []string{"json"}, export.Options{}) != nil {
			t.Errorf("warnings %s", w)
		}
	})
}
