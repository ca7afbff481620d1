package otlp

import (
	"bytes"
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers are those of OTLP 1.x, which are fixed: opentelemetry.proto.collector.trace.v1 and trace.v1.

var errWire = errors.New("it is no ExportTraceServiceRequest")

// field is one field of a message: num is the value of a number of any kind, raw the content of a field with a length.
type field struct {
	number protowire.Number
	kind   protowire.Type
	num    uint64
	raw    []byte
}

// fields calls each for the fields of a message; groups are refused.
func fields(b []byte, each func(f field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.num, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.num, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			f.num = uint64(v)
		case protowire.BytesType:
			f.raw, n = protowire.ConsumeBytes(b)
		default:
			return errWire
		}
		if n < 0 {
			return errWire
		}
		b = b[n:]
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// inside calls each for the messages of one field.
func inside(b []byte, number protowire.Number, each func(raw []byte) error) error {
	return fields(b, func(f field) error {
		if f.number != number || f.kind != protowire.BytesType {
			return nil
		}
		return each(f.raw)
	})
}

// Protobuf takes an ExportTraceServiceRequest. It keeps nothing of the message. What comes before an error is taken.
func (d *Decoder) Protobuf(message []byte) error {
	return inside(message, 1, func(resource []byte) error {
		replica := ""
		err := inside(resource, 1, func(raw []byte) error {
			return inside(raw, 1, func(attribute []byte) error {
				return protoAttribute(attribute, func(key []byte) bool { return string(key) == instanceKey },
					func(_ []byte, v value) { replica = v.string() })
			})
		})
		if err != nil {
			return err
		}
		return inside(resource, 2, func(scope []byte) error {
			return inside(scope, 2, func(raw []byte) error {
				d.span.reset(replica)
				if err := fields(raw, d.protoSpan); err != nil {
					return err
				}
				d.end()
				return nil
			})
		})
	})
}

// instanceKey is the attribute of a resource that tells one server from its equals.
const instanceKey = "service.instance.id"

func (d *Decoder) protoSpan(f field) error {
	s := &d.span
	switch {
	case f.number == 1:
		copy(s.trace[:], f.raw)
	case f.number == 2:
		copy(s.id[:], f.raw)
	case f.number == 4:
		copy(s.parent[:], f.raw)
	case f.number == 5:
		s.engine = bytes.Equal(f.raw, []byte("llm_request"))
	case f.number == 7 && f.kind == protowire.Fixed64Type:
		s.startNS = f.num
	case f.number == 9 && f.kind == protowire.BytesType:
		return protoAttribute(f.raw, wanted, s.set)
	case f.number == 15 && f.kind == protowire.BytesType:
		return fields(f.raw, func(f field) error {
			if f.number == 3 {
				s.failed = f.num == 2
			}
			return nil
		})
	}
	return nil
}

// protoAttribute reads a KeyValue if its key is wanted.
func protoAttribute(b []byte, wanted func([]byte) bool, set func([]byte, value)) error {
	var key, raw []byte
	err := fields(b, func(f field) error {
		switch f.number {
		case 1:
			key = f.raw
		case 2:
			raw = f.raw
		}
		return nil
	})
	if err != nil || !wanted(key) {
		return err
	}
	var v value
	err = fields(raw, func(f field) error {
		switch {
		case f.number == 1 && f.kind == protowire.BytesType:
			v.text, v.isText = f.raw, true
		case f.number == 3 && f.kind == protowire.VarintType:
			v.integer, v.number = int64(f.num), float64(int64(f.num))
		case f.number == 4 && f.kind == protowire.Fixed64Type:
			v.ofNumber(math.Float64frombits(f.num))
		case f.number == 5 && f.kind == protowire.BytesType: // of texts, the first
			return inside(f.raw, 1, func(element []byte) error {
				return inside(element, 1, func(text []byte) error {
					if !v.isText {
						v.text, v.isText = text, true
					}
					return nil
				})
			})
		}
		return nil
	})
	if err == nil {
		set(key, v)
	}
	return err
}

// ofNumber takes a number, which is a count where it is an integer.
func (v *value) ofNumber(n float64) {
	v.number, v.integer = n, -1
	if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		v.integer = int64(n)
	}
}
