package triton

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// errNotStats is that of a body that is no answer of the statistics extension.
var errNotStats = errors.New("body is no answer of Triton's statistics extension: it has no list model_stats")

// walker reads the statistics of models from a body and hands them on one by
// one. What it finds beyond the limits it counts and leaves out.
type walker struct {
	limits Limits
	losses losses
	entry  entry
	models int
	each   func(*entry) error
}

// done hands on the entry that was read.
func (w *walker) done() error {
	if w.models++; w.models > w.limits.Models {
		w.losses.add(reasonModels, 1, "model "+w.entry.name+": too many models")
		return nil
	}
	if len(w.entry.name)+len(w.entry.version) > w.limits.ValueLength {
		w.losses.add(reasonValue, 1, "name of a model is too long, see --max-value-length")
		return nil
	}
	w.entry.settle(&w.losses)
	return w.each(&w.entry)
}

// readJSON reads the JSON form, be it that of the server or that of a protobuf
// message, in which 64-bit numbers are strings and zeros are left out.
func (w *walker) readJSON(body []byte) error {
	c, found, err := newCursor(bytes.NewBuffer(body)), false, error(nil)
	c.members(func(key string) {
		if key != "model_stats" && key != "modelStats" || c.peek() != '[' {
			c.skip()
			return
		}
		found = true
		c.elements(func() {
			if err != nil || c.peek() != '{' {
				c.skip()
				return
			}
			w.entry.reset()
			w.model(c)
			if c.err == nil {
				err = w.done()
			}
		})
	})
	switch c.read(); { // behind the answer is nothing
	case c.err != io.EOF:
		return errors.New("body is no JSON")
	case err != nil:
		return err
	case !found:
		return errNotStats
	}
	return nil
}

// model reads one element of model_stats. Keys in camelCase are those of the JSON form of protobuf.
func (w *walker) model(c *cursor) {
	e := &w.entry
	c.members(func(key string) {
		switch key {
		case "name":
			e.name = c.text()
		case "version":
			e.version = c.text()
		case "last_inference", "lastInference":
			w.number(c, &e.last, key)
		case "inference_count", "inferenceCount":
			w.number(c, &e.inferences, key)
		case "execution_count", "executionCount":
			w.number(c, &e.executions, key)
		case "inference_stats", "inferenceStats":
			w.durations(c, inferNames[:], e.infer[:])
		case "batch_stats", "batchStats":
			c.elements(func() { w.batch(c) })
		case "response_stats", "responseStats":
			c.members(func(index string) { w.response(c, index) })
		case "memory_usage", "memoryUsage":
			c.elements(func() { w.memory(c) })
		default:
			c.skip()
		}
	})
}

// snake turns the camelCase of protobuf's JSON form into the server's names.
func snake(key string) string {
	if strings.ToLower(key) == key {
		return key
	}
	var b strings.Builder
	for _, r := range key {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (w *walker) durations(c *cursor, names []string, into []duration) {
	c.members(func(key string) {
		if i := slices.Index(names, snake(key)); i >= 0 {
			w.duration(c, &into[i], key)
			return
		}
		c.skip()
	})
}

func (w *walker) duration(c *cursor, d *duration, what string) {
	if c.peek() != '{' {
		c.skip()
		return
	}
	d.has = true
	empty := true
	c.members(func(key string) {
		empty = false
		switch key {
		case "count":
			w.number(c, &d.count, what+".count")
		case "ns":
			w.number(c, &d.ns, what+".ns")
		default:
			c.skip()
		}
	})
	w.entry.zeros = w.entry.zeros || empty
}

func (w *walker) batch(c *cursor) {
	e := &w.entry
	if len(e.batches) == w.limits.Batches {
		w.losses.add(reasonBatches, 2*len(batchNames), "model "+e.name+": too many batch sizes")
		c.skip()
		return
	}
	e.batches = append(e.batches, batch{})
	b := &e.batches[len(e.batches)-1]
	c.members(func(key string) {
		if key = snake(key); key == "batch_size" {
			w.number(c, &b.size, key)
		} else if i := slices.Index(batchNames[:], key); i >= 0 {
			w.duration(c, &b.stats[i], key)
		} else {
			c.skip()
		}
	})
}

func (w *walker) response(c *cursor, key string) {
	e := &w.entry
	if len(e.responses) == w.limits.Responses {
		w.losses.add(reasonResponses, 2*len(responseNames), "model "+e.name+": too many response indices")
		c.skip()
		return
	}
	if len(key) > w.limits.ValueLength {
		w.losses.add(reasonValue, 2*len(responseNames), "response index is too long, see --max-value-length")
		c.skip()
		return
	}
	e.responses = append(e.responses, response{key: strings.Clone(key)})
	w.durations(c, responseNames[:], e.responses[len(e.responses)-1].stats[:])
}

func (w *walker) memory(c *cursor) {
	e := &w.entry
	if len(e.memory) == w.limits.Batches {
		w.losses.add(reasonBatches, 1, "model "+e.name+": too many kinds of memory")
		c.skip()
		return
	}
	m := memory{}
	c.members(func(key string) {
		switch snake(key) {
		case "type":
			m.kind = c.text()
		case "id":
			text, _ := c.number()
			id, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				w.losses.add(reasonParse, 1, "memory id "+text+" of model "+e.name+" is no integer")
				return
			}
			m.id = id
		case "byte_size":
			w.number(c, &m.bytes, key)
		default:
			c.skip()
		}
	})
	if len(m.kind) > w.limits.ValueLength {
		w.losses.add(reasonValue, 1, "type of memory is too long, see --max-value-length")
		return
	}
	e.memory = append(e.memory, m)
}

// number reads an unsigned integer, which may be in quotes. Null is no value.
func (w *walker) number(c *cursor, into *whole, what string) {
	text, quoted := c.number()
	if text == "null" {
		return
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		w.losses.add(reasonParse, 1, fmt.Sprintf("%s %s of model %s is no unsigned 64-bit integer", metric.Clean(what, 40),
			metric.Clean(text, 40), metric.Clean(w.entry.name, 60)))
		return
	}
	w.entry.zeros = w.entry.zeros || quoted
	into.set(v)
}
