package triton

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers are those of package inference of Triton's gRPC service, section
// 1.2 of the design document triton.md. Fields that are not known, and known
// ones of another wire type, are skipped.

var errWire = errors.New("body is no protobuf message")

// field is one field of a message: num is a varint's value, raw the content of a field with a length.
type field struct {
	number protowire.Number
	varint bool
	num    uint64
	raw    []byte
}

// fields calls each for the fields of a message that are varints or have a length.
func fields(b []byte, each func(f field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		f := field{number: number}
		switch kind {
		case protowire.VarintType:
			f.varint = true
			f.num, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.raw, n = protowire.ConsumeBytes(b)
		default:
			if n = protowire.ConsumeFieldValue(number, kind, b); n >= 0 {
				b = b[n:]
				continue
			}
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

func plain(raw []byte) string { return strings.ToValidUTF8(string(raw), "\uFFFD") }

// readProto reads a ModelStatisticsResponse.
func (w *walker) readProto(body []byte) error {
	return fields(body, func(f field) error {
		if f.number != 1 || f.varint {
			return nil
		}
		w.entry.reset()
		w.entry.zeros = true
		if err := fields(f.raw, w.protoModel); err != nil {
			return err
		}
		return w.done()
	})
}

// protoModel takes a field of ModelStatistics.
func (w *walker) protoModel(f field) error {
	e := &w.entry
	if f.varint {
		switch f.number {
		case 3:
			e.last.set(f.num)
		case 4:
			e.inferences.set(f.num)
		case 5:
			e.executions.set(f.num)
		}
		return nil
	}
	switch f.number {
	case 1:
		e.name = plain(f.raw)
	case 2:
		e.version = plain(f.raw)
	case 6:
		return fields(f.raw, func(f field) error { return protoStat(f, 1, e.infer[:]) })
	case 7:
		return w.protoBatch(f.raw)
	case 8:
		return w.protoMemory(f.raw)
	case 9:
		return w.protoResponse(f.raw)
	}
	return nil
}

// protoStat takes a StatisticDuration; first is the number of the first of into.
func protoStat(f field, first protowire.Number, into []duration) error {
	i := int(f.number) - int(first)
	if f.varint || i < 0 || i >= len(into) {
		return nil
	}
	d := &into[i]
	d.has = true
	return fields(f.raw, func(f field) error {
		switch {
		case f.varint && f.number == 1:
			d.count.set(f.num)
		case f.varint && f.number == 2:
			d.ns.set(f.num)
		}
		return nil
	})
}

func (w *walker) protoBatch(raw []byte) error {
	e := &w.entry
	if len(e.batches) == w.limits.Batches {
		w.losses.add(reasonBatches, 2*len(batchNames), "model "+e.name+": too many batch sizes")
		return nil
	}
	e.batches = append(e.batches, batch{})
	b := &e.batches[len(e.batches)-1]
	return fields(raw, func(f field) error {
		if f.varint && f.number == 1 {
			b.size.set(f.num)
			return nil
		}
		return protoStat(f, 2, b.stats[:])
	})
}

func (w *walker) protoMemory(raw []byte) error {
	e := &w.entry
	if len(e.memory) == w.limits.Batches {
		w.losses.add(reasonBatches, 1, "model "+e.name+": too many kinds of memory")
		return nil
	}
	m := memory{}
	err := fields(raw, func(f field) error {
		switch {
		case f.number == 1 && !f.varint:
			m.kind = plain(f.raw[:min(len(f.raw), w.limits.ValueLength)])
		case f.number == 2 && f.varint:
			m.id = int64(f.num) // two's complement in ten bytes
		case f.number == 3 && f.varint:
			m.bytes.set(f.num)
		}
		return nil
	})
	e.memory = append(e.memory, m)
	return err
}

// protoResponse takes an entry of the map response_stats.
func (w *walker) protoResponse(raw []byte) error {
	e := &w.entry
	if len(e.responses) == w.limits.Responses {
		w.losses.add(reasonResponses, 2*len(responseNames), "model "+e.name+": too many response indices")
		return nil
	}
	e.responses = append(e.responses, response{})
	r := &e.responses[len(e.responses)-1]
	return fields(raw, func(f field) error {
		switch {
		case f.varint:
		case f.number == 1 && len(f.raw) <= w.limits.ValueLength:
			r.key = plain(f.raw)
		case f.number == 2:
			return fields(f.raw, func(f field) error { return protoStat(f, 1, r.stats[:]) })
		}
		return nil
	})
}

// appendRequest appends a request that names a model and a version, as ModelStatistics and ModelConfig take it.
func appendRequest(b []byte, model, version string) []byte {
	if model != "" {
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), model)
	}
	if version != "" {
		b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), version)
	}
	return b
}

// protoSteps returns what the steps of an ensemble call, from a ModelConfigResponse: config=1, ensemble_scheduling=15,
// step=1, in which model_name=1 and model_version=2.
func protoSteps(body []byte) ([]string, error) {
	var steps []string
	var inside func(path []protowire.Number) func(f field) error
	inside = func(path []protowire.Number) func(f field) error {
		return func(f field) error {
			switch {
			case f.varint || f.number != path[0]:
				return nil
			case len(path) > 1:
				return fields(f.raw, inside(path[1:]))
			}
			name, version := "", ""
			err := fields(f.raw, func(f field) error {
				switch {
				case f.number == 1 && !f.varint:
					name = plain(f.raw)
				case f.number == 2 && f.varint:
					version = strconv.FormatInt(int64(f.num), 10)
				}
				return nil
			})
			steps = appendStep(steps, name, version)
			return err
		}
	}
	err := fields(body, inside([]protowire.Number{1, 15, 1}))
	return steps, err
}

// maxSteps bounds the steps of an ensemble.
const maxSteps = math.MaxUint8
