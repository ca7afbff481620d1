package traffic

import (
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/metric"
)

// Tier is how well a series tells of requests.
type Tier uint8

// The tiers. Known series are those of the catalog, HTTP ones are told by the path in their labels, and generic ones
// by words in their name: these count only where no target of the run has known ones.
const (
	None Tier = iota
	Known
	HTTP
	Generic
)

// Evidence returns how well a series of a family tells of requests. Level is set when its values are numbers of present
// requests, else what they gain tells of them.
func Evidence(c *catalog.Catalog, fam *metric.Family, l metric.Labels) (tier Tier, level bool) {
	f, _ := c.Family(fam.Name)
	kind := fam.Type
	if f != nil && kind == metric.Unknown {
		kind = f.Type
	}
	level = kind == metric.Gauge
	if !level && kind != metric.Counter && kind != metric.Histogram && kind != metric.Summary {
		return None, false
	}
	path, hasPath := pathOf(l)
	switch {
	case f != nil && f.Traffic == "no", hasPath && isProbe(path):
		return None, false
	case strings.HasPrefix(fam.Name, "http_"):
		if hasPath && !level && infers(path) {
			return HTTP, false
		}
		return None, false
	case f == nil || f.Engine == genericEngine:
		if !level && f == nil && !c.Quiet(fam.Name) && saysRequest(fam.Name) {
			return Generic, false
		}
		return None, false
	case f.Traffic == "yes", level && (f.Canonical == "running" || f.Canonical == "waiting" || f.Moves == "arrival"),
		!level && tells(f):
		return Known, level
	}
	return None, false
}

// genericEngine has the families of client libraries in the catalog.
const genericEngine = "generic"

// tells reports whether what a family of counts gains is of requests. Engines with data parallelism step while idle.
func tells(f *catalog.Family) bool {
	switch f.Moves {
	case "arrival", "token", "finish":
		return true
	case "step":
		return slices.Contains([]string{"input_tokens", "output_tokens", "prefix_query"}, f.Canonical)
	}
	return false
}

// pathOf returns the path of HTTP requests that the labels name.
func pathOf(l metric.Labels) (string, bool) {
	for name, v := range l.All() {
		switch name {
		case "handler", "path", "route", "endpoint", "url":
			return strings.Trim(v, "/"), true
		}
	}
	return "", false
}

// infers reports whether a path is one that requests for a model go to.
func infers(path string) bool {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == ':' })
	for i, p := range parts {
		switch {
		case strings.HasPrefix(p, "predict"), p == "images":
			return true
		case i < len(parts)-1:
		case strings.HasSuffix(p, "completions"), strings.HasPrefix(p, "generate"):
			return true
		case slices.Contains([]string{"responses", "messages", "embeddings", "rerank", "score", "classify", "pooling",
			"infer", "invocations", "speech", "transcriptions", "translations", "chat"}, p):
			return true
		}
	}
	return false
}

// isProbe reports whether a path is one that those who watch a server ask.
func isProbe(path string) bool {
	last := path[strings.LastIndexByte(path, '/')+1:]
	return slices.Contains([]string{"metrics", "health", "healthz", "health_generate", "livez", "live", "readyz", "ready",
		"ping", "version", "models", "tokenize", "detokenize", "routes", "docs", "openapi.json", "server_info",
		"get_model_info"}, last)
}

// saysRequest reports whether the name of an unknown family has a word for what a load brings.
func saysRequest(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == ':' || r == '.' })
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"request", "inference", "prediction", "completion", "token", "query", "querie"},
			strings.TrimSuffix(w, "s"))
	})
}

// saysRequests reports whether an unknown family counts requests themselves, by its name.
func saysRequests(name string) bool { return strings.Contains(strings.ToLower(name), "request") }
