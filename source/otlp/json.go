package otlp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

var errJSON = errors.New("it is no OTLP/JSON request")

// JSON takes a request as JSON. It keeps nothing of the message. What comes before an error is taken.
func (d *Decoder) JSON(message []byte) error {
	return d.list(message, "resourceSpans", func(resource jsontext.Value) error {
		replica := ""
		err := members(resource, func(name string, v jsontext.Value) error {
			if name != "resource" {
				return nil
			}
			return d.list(v, "attributes", func(attribute jsontext.Value) error {
				return jsonAttribute(attribute, func(key []byte) bool { return string(key) == instanceKey },
					func(_ []byte, v value) { replica = v.string() })
			})
		})
		if err != nil {
			return err
		}
		return d.list(resource, "scopeSpans", func(scope jsontext.Value) error {
			return d.list(scope, "spans", func(raw jsontext.Value) error {
				d.span.reset(replica)
				if err := members(raw, d.jsonSpan); err != nil {
					return err
				}
				d.end()
				return nil
			})
		})
	})
}

// list calls each for the elements of one member of an object.
func (d *Decoder) list(object jsontext.Value, member string, each func(jsontext.Value) error) error {
	return members(object, func(name string, v jsontext.Value) error {
		if name != member {
			return nil
		}
		return elements(v, each)
	})
}

// members calls each for those of an object; a value is valid during the call. null is an empty object.
func members(object jsontext.Value, each func(name string, v jsontext.Value) error) error {
	in := reader(object)
	if in.PeekKind() == 'n' {
		return nil
	}
	if t, err := in.ReadToken(); err != nil || t.Kind() != '{' {
		return errJSON
	}
	for in.PeekKind() != '}' {
		t, err := in.ReadToken()
		if err != nil {
			return errJSON
		}
		name := ""
		if t.Kind() == '"' {
			name = t.String()
		}
		v, err := in.ReadValue()
		if err != nil {
			return errJSON
		}
		if err := each(name, v); err != nil {
			return err
		}
	}
	return nil
}

// elements calls each for those of an array. null is an empty one.
func elements(array jsontext.Value, each func(jsontext.Value) error) error {
	in := reader(array)
	if in.PeekKind() == 'n' {
		return nil
	}
	if t, err := in.ReadToken(); err != nil || t.Kind() != '[' {
		return errJSON
	}
	for in.PeekKind() != ']' {
		v, err := in.ReadValue()
		if err != nil {
			return errJSON
		}
		if err := each(v); err != nil {
			return err
		}
	}
	return nil
}

func reader(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func (d *Decoder) jsonSpan(name string, v jsontext.Value) error {
	s := &d.span
	switch name {
	case "traceId":
		s.trace = jsonID(v)
	case "spanId":
		s.id = jsonID(v)
	case "parentSpanId":
		s.parent = jsonID(v)
	case "name":
		s.engine = string(v) == `"llm_request"`
	case "startTimeUnixNano":
		s.startNS, _ = strconv.ParseUint(string(bytes.Trim(v, `"`)), 10, 64) // without it the span is bad
	case "attributes":
		return elements(v, func(attribute jsontext.Value) error { return jsonAttribute(attribute, wanted, s.set) })
	case "status":
		return members(v, func(name string, v jsontext.Value) error {
			if name == "code" {
				s.failed = string(v) == "2" || string(v) == `"STATUS_CODE_ERROR"`
			}
			return nil
		})
	}
	return nil
}

// jsonID is the bytes of an id, which is written in hexadecimal digits.
func jsonID(v jsontext.Value) (id [16]byte) {
	if text := bytes.Trim(v, `"`); len(text) <= 2*len(id) {
		_, _ = hex.Decode(id[:], text) // of one that is none nothing is taken
	}
	return id
}

// jsonAttribute reads a KeyValue if its key is wanted.
func jsonAttribute(object jsontext.Value, wanted func([]byte) bool, set func([]byte, value)) error {
	var key []byte
	err := members(object, func(name string, v jsontext.Value) error {
		if name == "key" && len(v) < maxText {
			key = bytes.Clone(bytes.Trim(v, `"`))
		}
		return nil
	})
	if err != nil || !wanted(key) {
		return err
	}
	return members(object, func(name string, v jsontext.Value) error {
		if name != "value" {
			return nil
		}
		x, err := jsonValue(v)
		if err == nil {
			set(key, x)
		}
		return err
	})
}

func jsonValue(object jsontext.Value) (x value, err error) {
	err = members(object, func(name string, v jsontext.Value) error {
		switch name {
		case "stringValue":
			x.isText = true
			x.text, err = jsontext.AppendUnquote(nil, v[:min(len(v), 16*maxText)])
			if err != nil {
				x.text = nil
			}
		case "intValue", "doubleValue":
			n, err := strconv.ParseFloat(string(bytes.Trim(v[:min(len(v), maxText)], `"`)), 64)
			if err != nil {
				x.isText = true // which no number is
				return nil
			}
			x.ofNumber(n)
		case "arrayValue":
			return members(v, func(name string, list jsontext.Value) error {
				if name != "values" {
					return nil
				}
				return elements(list, func(element jsontext.Value) error {
					if !x.isText {
						return members(element, func(name string, v jsontext.Value) error {
							if name == "stringValue" && len(v) < maxText {
								x.text, _ = jsontext.AppendUnquote(nil, v) // it is a JSON string
								x.isText = true
							}
							return nil
						})
					}
					return nil
				})
			})
		}
		return nil
	})
	return x, err
}

// Warning is what to tell the user of the file: nothing.
func (d *Decoder) Warning() string { return "" }

// Read takes a file of requests as JSON, one on each line, as collectors write them. Lines that are none are
// counted as bad; only in fails.
func (d *Decoder) Read(ctx context.Context, in io.Reader) error {
	r := bufio.NewReaderSize(in, 256<<10)
	var line []byte
	for n := 1; ; n++ {
		long := false
		line = line[:0]
		var err error
		for part := []byte(nil); ; {
			part, err = r.ReadSlice('\n')
			if long = long || len(line)+len(part) > maxMessage; !long {
				line = append(line, part...)
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
		}
		switch text := bytes.TrimSpace(line); {
		case long:
			d.counts.Note("line %d: longer than %d MiB", n, maxMessage>>20)
		case len(text) > 0:
			if bad := d.JSON(text); bad != nil {
				d.counts.Note("line %d: %v", n, bad)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}
