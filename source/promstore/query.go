package promstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
)

// samples receives what an answer holds.
type samples interface {
	// series is told the name and labels of the samples that follow. They are valid during the call only.
	series(name string, labels []metric.Label) error
	// sample is one sample of the last series.
	sample(atMS int64, v float64) error
	// native counts a native histogram sample, which is not read.
	native(atMS int64)
}

// query asks for the raw samples in (fromMS, toMS].
func (c *client) query(ctx context.Context, selector string, fromMS, toMS int64, to samples) error {
	form := url.Values{
		"query": {selector + "[" + strconv.FormatInt(toMS-fromMS, 10) + "ms]"},
		"time":  {strconv.FormatFloat(float64(toMS)/1000, 'f', 3, 64)},
	}
	resp, err := c.do(ctx, "/api/v1/query", "application/x-www-form-urlencoded", form.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := decodeMatrix(&bounded{resp.Body, maxResponse}, to); err != nil {
		return fmt.Errorf("read answer of %s: %w", c.name(), err)
	}
	return nil
}

// decodeMatrix reads an answer of the query API as a stream.
func decodeMatrix(r io.Reader, to samples) error {
	d := newDecoder(r)
	status, kind := "", ""
	err := eachMember(d, func(name string) error {
		switch name {
		case "status":
			return readString(d, &status)
		case "data":
			return eachMember(d, func(name string) error {
				switch name {
				case "resultType":
					return readString(d, &kind)
				case "result":
					if kind != "" && kind != "matrix" {
						return fmt.Errorf("result type %q, want matrix: --match takes series selectors only", metric.Clean(kind, 50))
					}
					return eachElement(d, func() error { return decodeSeries(d, to) })
				}
				return d.SkipValue()
			})
		}
		return d.SkipValue()
	})
	switch {
	case err == nil && status != "success":
		return fmt.Errorf("status is %q, want success", metric.Clean(status, 50))
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w", io.ErrUnexpectedEOF)
	}
	return err
}

func readString(d *jsontext.Decoder, to *string) error {
	tok, err := d.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() != '"' {
		return fmt.Errorf("a string was expected, got %v", tok.Kind())
	}
	*to = tok.String()
	return nil
}

// decodeSeries reads one element of the result: its labels, then its values. An answer that has them the other way
// round is read too, within what one value may hold.
func decodeSeries(d *jsontext.Decoder, to samples) error {
	known := false
	var early []jsontext.Value
	var earlyKinds []string
	err := eachMember(d, func(name string) error {
		switch name {
		case "metric":
			known = true
			return decodeLabels(d, to)
		case "values", "histograms":
			if !known {
				v, err := d.ReadValue()
				if early, earlyKinds = append(early, v.Clone()), append(earlyKinds, name); len(early) > 2 {
					err = errors.New("a series has its values more than once before its labels")
				}
				return err
			}
			return decodeValues(d, name, to)
		}
		return d.SkipValue()
	})
	if err != nil {
		return err
	}
	if !known {
		return errors.New("a series without labels")
	}
	for i, v := range early {
		if err := decodeValues(jsontext.NewDecoder(bytes.NewReader(v)), earlyKinds[i], to); err != nil {
			return err
		}
	}
	return nil
}

// checkLabels bounds the labels of a series.
func checkLabels(n int) error {
	if n > 10_000 {
		return errors.New("a series has more than 10000 labels")
	}
	return nil
}

func decodeLabels(d *jsontext.Decoder, to samples) error {
	name := ""
	var labels []metric.Label
	err := eachMember(d, func(key string) error {
		if err := checkLabels(len(labels)); err != nil {
			return err
		}
		if key == "__name__" {
			return readString(d, &name)
		}
		labels = append(labels, metric.Label{Name: key})
		return readString(d, &labels[len(labels)-1].Value)
	})
	if err != nil {
		return err
	}
	return to.series(name, labels)
}

func decodeValues(d *jsontext.Decoder, name string, to samples) error {
	return eachElement(d, func() error {
		raw, err := d.ReadValue()
		if err != nil {
			return err
		}
		atMS, v, ok := parsePair(raw, name == "values")
		switch {
		case !ok:
			return fmt.Errorf("a sample is %.60q", []byte(raw))
		case name == "values":
			return to.sample(atMS, v)
		}
		to.native(atMS)
		return nil
	})
}

// parsePair reads [1700000000.123,"1.5"]; without value only the time.
func parsePair(raw []byte, value bool) (atMS int64, v float64, ok bool) {
	rest, ok := bytes.CutPrefix(raw, []byte("["))
	stamp, rest, found := bytes.Cut(rest, []byte(","))
	if !ok || !found {
		return 0, 0, false
	}
	seconds, err := strconv.ParseFloat(string(bytes.TrimSpace(stamp)), 64)
	if err != nil || math.IsNaN(seconds) || math.Abs(seconds) > maxSeconds {
		return 0, 0, false
	}
	atMS = int64(math.Round(seconds * 1000))
	if !value {
		return atMS, 0, true
	}
	text, ok := bytes.CutSuffix(bytes.TrimSpace(rest), []byte("]"))
	text = bytes.TrimSpace(text)
	if !ok || len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return 0, 0, false
	}
	v, err = strconv.ParseFloat(string(text[1:len(text)-1]), 64)
	return atMS, v, err == nil
}

// maxSeconds keeps times inside what nanoseconds in 64 bits can say.
const maxSeconds = 9_200_000_000

// metadata reads the types and help texts that the store knows.
func (c *client) metadata(ctx context.Context, t *timeline.Timeline) error {
	resp, err := c.do(ctx, "/api/v1/metadata", "", "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := decodeMetadata(&bounded{resp.Body, maxMetadata}, t.DescribeMore); err != nil {
		return fmt.Errorf("read metadata of %s: %w", c.name(), err)
	}
	return nil
}

// decodeMetadata reads an answer of the metadata API: by name a list of what
// targets declare. The first that has a type counts.
func decodeMetadata(r io.Reader, describe func(string, timeline.Meta)) error {
	d := newDecoder(r)
	return eachMember(d, func(key string) error {
		if key != "data" {
			return d.SkipValue()
		}
		return eachMember(d, func(name string) error {
			var best timeline.Meta
			err := eachElement(d, func() error {
				var typ string
				var m timeline.Meta
				err := eachMember(d, func(field string) error {
					switch field {
					case "type":
						return readString(d, &typ)
					case "help":
						return readString(d, &m.Help)
					case "unit":
						return readString(d, &m.Unit)
					}
					return d.SkipValue()
				})
				m.Type, _ = metric.ParseType(typ)
				if best.Type == metric.Unknown && (m.Type != metric.Unknown || best.Help == "") {
					best = m
				}
				return err
			})
			describe(name, best)
			return err
		})
	})
}
