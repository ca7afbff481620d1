package query

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/units"
)

// appendJSON appends a value of [Column.Of].
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendText(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	case bool:
		return strconv.AppendBool(b, v)
	case metric.Labels:
		b = append(b, '{')
		for name, value := range v.All() {
			if b[len(b)-1] != '{' {
				b = append(b, ',')
			}
			b = appendText(append(appendText(b, name), ':'), value)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

func appendText(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // of a string it cannot fail
	return append(b, texttab.PrintableJSON(text)...)
}

// WriteJSON writes rows as one object of columns; truncated is asked for when all rows are written.
func WriteJSON(w io.Writer, rows iter.Seq[*Row], truncated func() bool) error {
	columns := Columns()
	values := make([][]byte, len(columns))
	n := 0
	for r := range rows {
		for i := range columns {
			if n > 0 {
				values[i] = append(values[i], ',')
			}
			values[i] = appendJSON(values[i], columns[i].Of(r))
		}
		n++
	}
	out := bufio.NewWriter(w)
	out.WriteString(`{"columns":{`)
	for i := range columns {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(append(appendText(nil, columns[i].Name), ":["...))
		out.Write(values[i])
		out.WriteByte(']')
	}
	out.WriteString(`},"rows":` + strconv.Itoa(n) + `,"truncated":` + strconv.FormatBool(truncated()) + "}\n")
	return out.Flush()
}

// WriteJSONL writes each row as a line.
func WriteJSONL(w io.Writer, rows iter.Seq[*Row]) error {
	out := bufio.NewWriter(w)
	columns := Columns()
	var b []byte
	for r := range rows {
		b = b[:0]
		for i := range columns {
			b = append(appendText(append(b, ','), columns[i].Name), ':')
			b = appendJSON(b, columns[i].Of(r))
		}
		b[0] = '{'
		if _, err := out.Write(append(b, "}\n"...)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// WriteCSV writes a line for each row below one of names. What a spreadsheet would compute gets a ' in front, unless
// raw.
func WriteCSV(w io.Writer, rows iter.Seq[*Row], raw bool) error {
	out := bufio.NewWriter(w)
	columns := Columns()
	var b []byte
	for i := range columns {
		b = append(append(b, ','), columns[i].Name...)
	}
	out.Write(append(b[1:], '\n'))
	for r := range rows {
		b = b[:0]
		for i := range columns {
			b = texttab.AppendCSV(append(b, ','), texttab.Cell{Value: columns[i].Of(r)}.CSV(), raw)
		}
		if _, err := out.Write(append(b[1:], '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Table is the rows for people.
func Table(rows iter.Seq[*Row]) *texttab.Table {
	t := &texttab.Table{}
	t.Header("RUN", "TARGET", "METRIC", "SPAN", "T", "STAT", "VALUE", "LOW", "HIGH", "N", "STATUS")
	t.Right(4, 6, 7, 8, 9)
	for r := range rows {
		n := ""
		if r.N >= 0 {
			n = strconv.FormatInt(r.N, 10)
		}
		status := r.Status
		if status == catalog.OK.String() && r.Flags != "" {
			status = r.Flags
		}
		name := r.Metric
		if r.Quantity != "" && r.Kind != "derived" {
			name = r.Quantity
		}
		if l := r.Labels.Without("target"); l.Len() > 0 {
			name += l.String()
		}
		t.Row(texttab.Escape(r.Run), texttab.Escape(cmp.Or(r.Target, "-")), texttab.Escape(name), r.Span,
			units.Format(r.T, "seconds"), r.Stat, shown(r.Value, r.Unit), shown(r.Low, r.Unit), shown(r.High, r.Unit), n,
			status)
	}
	return t
}

func shown(v float64, unit string) string {
	if math.IsNaN(v) {
		return "-"
	}
	return units.Format(v, unit)
}

// List is what rows tell of: a line for each metric, with its unit and statistics.
func List(rows iter.Seq[*Row]) *texttab.Table {
	t := &texttab.Table{Columns: []texttab.Column{{ID: "metric", Head: "METRIC"}, {ID: "quantity", Head: "QUANTITY"},
		{ID: "kind", Head: "KIND"}, {ID: "unit", Head: "UNIT"}, {ID: "series", Head: "SERIES", Right: true},
		{ID: "stats", Head: "STATISTICS"}}}
	type entry struct {
		row    Row
		unit   string
		stats  []string
		things map[string]bool
	}
	at := map[family]*entry{}
	var order []*entry
	for r := range rows {
		k := family{name: r.Metric}
		k.typ, _ = metric.ParseType(r.Kind)
		e := at[k]
		if e == nil {
			e = &entry{row: *r, things: map[string]bool{}}
			at[k], order = e, append(order, e)
		}
		if e.unit == "" && r.Stat != "rate" && r.Stat != "count" {
			e.unit = r.Unit
		}
		if r.Stat != "" && !slices.Contains(e.stats, r.Stat) {
			e.stats = append(e.stats, r.Stat)
		}
		e.things[r.Run+"\x00"+r.URL+"\x00"+r.Labels.String()] = true
	}
	for _, e := range order {
		cell := func(s string) texttab.Cell { return texttab.Cell{Text: texttab.Escape(cmp.Or(s, "-")), Value: s} }
		n := len(e.things)
		t.Rows = append(t.Rows, []texttab.Cell{cell(e.row.Metric), cell(e.row.Quantity), cell(e.row.Kind), cell(e.unit),
			{Text: strconv.Itoa(n), Value: int64(n)}, {Text: strings.Join(e.stats, " "), Value: e.stats}})
	}
	return t
}
