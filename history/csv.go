package history

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/headline"
	"github.com/scrapestat/scrapestat/metric"
)

// CSVOptions is how a file of values of other tools is read.
type CSVOptions struct {
	Keys   []string          // tags that are part of the configuration
	Better map[string]string // by quantity: lower or higher
}

// maxCSVColumns bounds the quantities of a line.
const maxCSVColumns = 1000

// ReadCSV reads runs from lines of values: the columns time, run, commit, branch, tag:NAME, and a quantity in each
// other one. time is RFC 3339, seconds since 1970, or "2026.01.01 3:00:00 +0100". An empty value is none; what is no
// number, or none above 0 where the quantity must have one, is a note. Errors begin with line:column.
func ReadCSV(r io.Reader, o CSVOptions, each func(*Entry) error) error {
	var head []string
	err := headline.Lines(r, func(names []string) (int, error) {
		switch head = names; {
		case !slices.Contains(head, "time"):
			return 0, errors.New("no column time")
		case len(head) > maxCSVColumns:
			return 0, fmt.Errorf("more than %d columns", maxCSVColumns)
		case !slices.ContainsFunc(head, isQuantity):
			return 0, errors.New("no column of a quantity")
		}
		return 0, nil
	}, func(row []string) (int, error) {
		e, at, err := o.entry(head, row)
		if err != nil {
			return at, err
		}
		return -1, each(e)
	})
	if err == nil && head == nil {
		err = errors.New("1:1: no header: time,run,commit,branch,tag:NAME,QUANTITY")
	}
	return err
}

func isQuantity(column string) bool {
	return !slices.Contains([]string{"time", "run", "commit", "branch"}, column) && !strings.HasPrefix(column, "tag:")
}

// entry reads a line; at is the field that is wrong.
func (o *CSVOptions) entry(head, row []string) (e *Entry, at int, err error) {
	sum := sha256.Sum256([]byte(strings.Join(head, ",") + "\n" + strings.Join(row, ",")))
	e = &Entry{Run: Run{ID: "csv-" + hex.EncodeToString(sum[:])[:16], Tags: map[string]string{}, State: Normal,
		Analysis: Analysis}, Settings: map[string]string{}}
	config := map[string]string{"source": "csv"}
	for i, text := range row {
		tag, isTag := strings.CutPrefix(head[i], "tag:")
		switch {
		case head[i] == "time":
			if e.AtNS, err = csvTime(text); err != nil {
				return nil, i, err
			}
		case head[i] == "run":
			e.Path = text
		case head[i] == "commit":
			e.Commit = text
		case head[i] == "branch":
			e.Branch = text
		case text == "":
		case isTag:
			if e.Tags[tag], e.Settings["tag "+tag] = text, text; slices.Contains(o.Keys, tag) {
				config["tag "+tag] = text
			}
		default:
			e.Values = append(e.Values, o.value(head[i], text))
		}
	}
	return e, 0, e.setConfig(config)
}

func (o *CSVOptions) value(name, text string) Value {
	v := Value{Quantity: name, Kind: Headline, Engine: "csv", Better: "neutral", Low: math.NaN(), High: math.NaN()}
	known := false
	for _, r := range headline.Rows() {
		if r.Name() == name {
			v.Unit, v.Better, known = r.Unit, r.Better.String(), true
		}
	}
	if b, ok := o.Better[name]; ok {
		v.Better = b
	}
	var err error
	if v.Value, err = strconv.ParseFloat(text, 64); err != nil || !metric.Finite(v.Value) || known && v.Value < 0 {
		v.Value, v.Note = math.NaN(), "not a number: "+text[:min(len(text), 40)]
	}
	return v
}

func csvTime(text string) (int64, error) {
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 && s < 9e9 {
		whole, part := math.Modf(s)
		return int64(whole)*1e9 + int64(math.Round(part*1e9)), nil
	}
	for _, layout := range []string{time.RFC3339, "2006.01.02 15:04:05 -0700", "2006-01-02 15:04:05 -0700"} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() > 1900 && t.Year() < 2200 {
			return t.UnixNano(), nil
		}
	}
	return 0, fmt.Errorf("time %q: want RFC 3339, seconds since 1970, or 2026.01.01 3:00:00 +0100", text)
}
