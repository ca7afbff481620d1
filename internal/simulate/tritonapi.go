package simulate

import (
	"encoding/binary"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// listed are the loaded models in the order in which the server lists them.
func (m *tritonModel) listed() []*tritonServed {
	out := slices.Clone(m.models)
	if m.canary != nil {
		out = append(out, m.canary)
	}
	return out
}

// chosen returns the models that a request names, or the server's words when there is none.
func (m *tritonModel) chosen(name, version string) ([]*tritonServed, string) {
	if name == "" {
		return m.listed(), ""
	}
	var out []*tritonServed
	known := false
	for _, s := range m.listed() {
		if s.name != name {
			continue
		}
		known = true
		if version == "" || version == s.version {
			out = append(out, s)
		}
	}
	switch {
	case !known:
		return nil, "requested model '" + name + "' is not available"
	case len(out) == 0:
		return nil, "requested model version is not available for model '" + name + "'"
	}
	return out, ""
}

// route answers the API of Triton's HTTP port: statistics and configurations.
func (m *tritonModel) route(u *url.URL) *answer {
	if u.Path == "/v2" {
		return jsonAnswer(http.StatusOK,
			`{"name":"triton","version":"2.50.0","extensions":["statistics","model_repository"]}`)
	}
	rest, ok := strings.CutPrefix(u.EscapedPath(), "/v2/")
	if !ok {
		return nil
	}
	if rest == "health/ready" {
		return &answer{status: http.StatusOK}
	}
	name, version, what, ok := splitModelPath(rest)
	if !ok {
		return jsonAnswer(http.StatusNotFound, `{"error":"Not Found"}`)
	}
	chosen, wrong := m.chosen(name, version)
	switch {
	case wrong != "":
		return jsonAnswer(http.StatusBadRequest, `{"error":"`+strings.NewReplacer(`"`, `'`, `\`, `/`).Replace(wrong)+`"}`)
	case what == "config" && name != "":
		return jsonAnswer(http.StatusOK, m.config(chosen[0]))
	case what != "stats":
		return jsonAnswer(http.StatusNotFound, `{"error":"Not Found"}`)
	}
	b := []byte(`{"model_stats":[`)
	for i, s := range chosen {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, s.statistics(m.w)...)
	}
	return jsonAnswer(http.StatusOK, string(append(b, "]}"...)))
}

// splitModelPath reads models[/M[/versions/V]]/what.
func splitModelPath(path string) (name, version, what string, ok bool) {
	parts := strings.Split(path, "/")
	if parts[0] != "models" || len(parts) < 2 {
		return "", "", "", false
	}
	what, parts = parts[len(parts)-1], parts[1:len(parts)-1]
	switch {
	case len(parts) == 0:
	case len(parts) == 1:
		name = parts[0]
	case len(parts) == 3 && parts[1] == "versions" && parts[2] != "" && strings.Trim(parts[2], "0123456789") == "":
		name, version = parts[0], parts[2]
	default:
		return "", "", "", false
	}
	name, err := url.PathUnescape(name)
	return name, version, what, err == nil
}

// tritonSteps are the models that the ensemble calls.
var tritonSteps = [...]string{"tokenizer", "encoder"}

func (m *tritonModel) config(s *tritonServed) string {
	if s.batcher != nil {
		return `{"name":"` + jsonName(s.name) + `","platform":"onnxruntime_onnx","backend":"onnxruntime"}`
	}
	var steps []string
	for _, step := range tritonSteps {
		steps = append(steps, `{"model_name":"`+step+`","model_version":-1}`)
	}
	return `{"name":"` + jsonName(s.name) + `","platform":"ensemble","ensemble_scheduling":{"step":[` +
		strings.Join(steps, ",") + `]}}`
}

func jsonName(s string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) }

// call answers gRPC: the statistics or the configuration that a request names.
// wrong is the server's words for INVALID_ARGUMENT.
func (m *tritonModel) call(method string, in []byte) (out []byte, wrong string, known bool) {
	name, version, ok := readModelRequest(in)
	if !ok {
		return nil, "request is no message", true
	}
	chosen, wrong := m.chosen(name, version)
	switch method {
	case "/inference.GRPCInferenceService/ServerMetadata":
		return protoBytes(protoBytes(out, 1, "triton"), 2, "2.50.0"), "", true
	case "/inference.GRPCInferenceService/ModelStatistics":
		if wrong != "" {
			return nil, wrong, true
		}
		for _, s := range chosen {
			out = protoBytes(out, 1, s.proto(m.w))
		}
		return out, "", true
	case "/inference.GRPCInferenceService/ModelConfig":
		if wrong != "" || name == "" {
			return nil, wrong, true
		}
		config := protoBytes([]byte(nil), 1, name)
		if chosen[0].batcher == nil {
			var ensemble []byte
			for _, step := range tritonSteps {
				ensemble = protoBytes(ensemble, 1, protoBytes([]byte(nil), 1, step))
			}
			config = protoBytes(config, 15, ensemble)
		}
		return protoBytes(out, 1, config), "", true
	}
	return nil, "", false
}

// readModelRequest reads the two texts of a request, name=1 and version=2, each shorter than 128 bytes.
func readModelRequest(b []byte) (name, version string, ok bool) {
	for len(b) > 0 {
		if len(b) < 2 || int(b[1]) > len(b)-2 || b[1] > 127 {
			return "", "", false
		}
		text := string(b[2 : 2+b[1]])
		switch b[0] {
		case 1<<3 | 2:
			name = text
		case 2<<3 | 2:
			version = text
		default:
			return "", "", false
		}
		b = b[2+len(text):]
	}
	return name, version, true
}

// protoWhole appends a varint field; zeros are left out.
func protoWhole(b []byte, number byte, v uint64) []byte {
	if v == 0 {
		return b
	}
	return binary.AppendUvarint(append(b, number<<3), v)
}

// protoBytes appends a field with a length.
func protoBytes[T string | []byte](b []byte, number byte, v T) []byte {
	return append(binary.AppendUvarint(append(b, number<<3|2), uint64(len(v))), v...)
}

func (d tritonDuration) proto() []byte {
	return protoWhole(protoWhole(nil, 1, uint64(d.count)), 2, uint64(d.ns))
}

// proto returns the entry of a model as a message ModelStatistics.
func (s *tritonServed) proto(w *world) []byte {
	t := &s.stats
	b := protoBytes(protoBytes([]byte(nil), 1, s.name), 2, s.version)
	b = protoWhole(protoWhole(protoWhole(b, 3, uint64(s.lastInference(w))), 4, uint64(t.inferences)), 5,
		uint64(t.executions))
	var infer []byte
	for i, d := range t.shown(w.now, w.opt.Tear) {
		infer = protoBytes(infer, byte(i+1), d.proto())
	}
	b = protoBytes(b, 6, infer)
	for _, size := range slices.Sorted(maps.Keys(t.batches)) {
		m := protoWhole(nil, 1, uint64(size))
		for k, d := range t.batches[size] {
			m = protoBytes(m, byte(k+2), d.proto())
		}
		b = protoBytes(b, 7, m)
	}
	if n := s.memory(); n > 0 {
		b = protoBytes(b, 8, protoWhole(protoBytes([]byte(nil), 1, "GPU"), 3, n))
	}
	return b
}
