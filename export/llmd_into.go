package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

// The limits of a report that is read, before and after its aliases are followed.
const (
	MaxReport      = 64 << 20 // bytes
	maxReportDepth = 100
	perValue       = 64 // bytes that a value takes beside its text
)

// Report is a benchmark report of llm-d that [LLMD] puts components into, once.
type Report struct {
	// Replace has fields overwritten that are in the report with other values. Else they are kept, and Kept names them.
	Replace bool
	Kept    []string

	doc texttab.Object
}

// ReadReport reads a report of version 0.2 or 0.2.1, JSON or YAML.
func ReadReport(text []byte) (*Report, error) {
	if len(text) > MaxReport {
		return nil, fmt.Errorf("read report: it has %d bytes, more than %d", len(text), MaxReport)
	}
	var doc any
	var err error
	if first := bytes.TrimSpace(text); len(first) > 0 && first[0] == '{' {
		doc, err = reportJSON(text)
	} else {
		doc, err = reportYAML(text)
	}
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	o, ok := doc.(texttab.Object)
	version, _ := json.Marshal(field(o, "version"))
	switch strings.Trim(string(version), `"`) {
	case "0.2", llmdVersion:
	default:
		ok = false
	}
	if !ok || field(o, "run") == nil {
		return nil, fmt.Errorf("read report: this is no benchmark report of llm-d of version 0.2 or %s (version: %s)",
			llmdVersion, version)
	}
	return &Report{doc: o}, nil
}

// spend takes bytes of what is left for the values of a report.
func spend(left *int, bytes, depth int) error {
	if *left -= bytes; *left < 0 || depth > maxReportDepth {
		return fmt.Errorf("with its aliases it is larger than %d bytes, or it is nested too deep", MaxReport)
	}
	return nil
}

// reportJSON decodes JSON whose objects keep their order, and numbers their text.
func reportJSON(text []byte) (any, error) {
	d, left := jsontext.NewDecoder(bytes.NewReader(text)), MaxReport
	v, err := jsonValue(d, &left)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind the JSON")
	}
	return v, nil
}

func jsonValue(d *jsontext.Decoder, left *int) (any, error) {
	if err := spend(left, perValue, d.StackDepth()); err != nil {
		return nil, err
	}
	switch d.PeekKind() {
	case '{':
		o := texttab.Object{}
		_, err := d.ReadToken()
		for err == nil && d.PeekKind() != '}' {
			var name jsontext.Token
			var v any
			if name, err = d.ReadToken(); err == nil {
				text := name.String()
				v, err = jsonValue(d, left)
				o = o.With(text, v)
			}
		}
		if err == nil {
			_, err = d.ReadToken()
		}
		return o, err
	case '[':
		list := []any{}
		_, err := d.ReadToken()
		for err == nil && d.PeekKind() != ']' {
			var v any
			v, err = jsonValue(d, left)
			list = append(list, v)
		}
		if err == nil {
			_, err = d.ReadToken()
		}
		return list, err
	}
	v, err := d.ReadValue()
	if err == nil {
		err = spend(left, len(v), 0)
	}
	return json.RawMessage(v.Clone()), err
}

// reportYAML decodes YAML the same way, following its aliases as far as the limits go.
func reportYAML(text []byte) (any, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	left := MaxReport
	if root.Kind != yaml.DocumentNode {
		return nil, errors.New("it is empty")
	}
	return yamlValue(root.Content[0], 0, &left)
}

func yamlValue(n *yaml.Node, depth int, left *int) (any, error) {
	if err := spend(left, len(n.Value)+perValue, depth); err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return yamlValue(n.Alias, depth+1, left)
	case yaml.SequenceNode:
		list := []any{}
		for _, x := range n.Content {
			v, err := yamlValue(x, depth+1, left)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case yaml.MappingNode:
		o, seen := texttab.Object{}, map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i]
			if name.Kind != yaml.ScalarNode || name.ShortTag() == "!!merge" || seen[name.Value] {
				return nil, fmt.Errorf("line %d: a key is no text, or is there twice", name.Line)
			}
			seen[name.Value] = true
			v, err := yamlValue(n.Content[i+1], depth+1, left)
			if err != nil {
				return nil, err
			}
			o = o.With(name.Value, v)
		}
		return o, nil
	}
	return yamlScalar(n)
}

func yamlScalar(n *yaml.Node) (any, error) {
	var v any
	switch n.ShortTag() {
	case "!!null", "!!bool":
		err := n.Decode(&v)
		return v, err
	case "!!int", "!!float":
		if text := jsontext.Value(n.Value); text.IsValid() && text.Kind() == '0' {
			return json.RawMessage(text), nil
		}
		err := n.Decode(&v)
		if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
			err = fmt.Errorf("line %d: JSON has no %s", n.Line, n.Value)
		}
		return v, err
	}
	return n.Value, nil
}

// field is a field of an object, nil where there is none or it is null.
func field(o texttab.Object, name string) any {
	for _, f := range o {
		if f.Name == name {
			if text, ok := f.Value.(json.RawMessage); ok && string(text) == "null" {
				return nil
			}
			return f.Value
		}
	}
	return nil
}

// set replaces a field or adds it.
func set(o texttab.Object, name string, v any) texttab.Object {
	for i := range o {
		if o[i].Name == name {
			o[i].Value = v
			return o
		}
	}
	return o.With(name, v)
}

// with returns the report with components.
func (r *Report) with(components []texttab.Object) texttab.Object {
	results, _ := field(r.doc, "results").(texttab.Object)
	observability, _ := field(results, "observability").(texttab.Object)
	list, _ := field(observability, "components").([]any)
	for _, c := range components {
		list = r.put(list, c)
	}
	r.doc = set(r.doc, "version", llmdVersion)
	return set(r.doc, "results", set(results, "observability", set(observability, "components", list)))
}

// put adds a component, or what the one of its name lacks.
func (r *Report) put(list []any, c texttab.Object) []any {
	for i := range list {
		own, ok := list[i].(texttab.Object)
		if !ok || !equal(field(own, "component_label"), field(c, "component_label")) ||
			!equal(field(own, "replica_id"), field(c, "replica_id")) {
			continue
		}
		list[i] = r.merge(own, c, fmt.Sprint(field(c, "replica_id")), true)
		return list
	}
	return append(list, c)
}

// merge puts fields into an object that has some; those of parts, one by one.
func (r *Report) merge(own, more texttab.Object, path string, parts bool) texttab.Object {
	for _, f := range more {
		have := field(own, f.Name)
		a, isPart := have.(texttab.Object)
		b, canBe := f.Value.(texttab.Object)
		switch {
		case have == nil:
			own = set(own, f.Name, f.Value)
		case parts && isPart && canBe:
			own = set(own, f.Name, r.merge(a, b, path+"."+f.Name, false))
		case equal(have, f.Value):
		case r.Replace:
			own = set(own, f.Name, f.Value)
		default:
			r.Kept = append(r.Kept, path+"."+f.Name)
		}
	}
	return own
}

// equal reports whether two values are the same JSON.
func equal(a, b any) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}
