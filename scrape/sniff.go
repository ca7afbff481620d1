package scrape

import (
	"bytes"
	"mime"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

const (
	// usualType is what nearly all servers send; knowing it saves parsing it.
	usualType = "text/plain; version=0.0.4; charset=utf-8"

	jsonText = "body is JSON, not Prometheus text; TensorRT-LLM has its metrics at /prometheus/metrics, " +
		"TorchServe's management API is on another port than its metrics"
	htmlText = "body looks like HTML, a login or error page; check the path, and authentication (--header, --bearer-token-file, --basic-auth-file)"
	gzipText = "body is gzip although its headers do not say so"
	protText = "body is protobuf (application/vnd.google.protobuf), which was not asked for; Prometheus text is"
)

// sniff finds the format of a body, or says why it is none. The bytes decide;
// the content type only where they leave it open.
func sniff(body []byte, contentType string) (f format, problem string) {
	media := ""
	if contentType != usualType {
		media = mediaType(contentType)
	}
	rest := bytes.TrimLeft(bytes.TrimPrefix(body, bom), " \t\r\n")
	switch {
	case len(rest) == 0 && media == "application/json", len(rest) > 0 && rest[0] == '[', isJSONObject(rest):
		return 0, jsonText
	case len(rest) > 0 && rest[0] == '<':
		return 0, htmlText
	case bytes.HasPrefix(rest, []byte{0x1f, 0x8b}):
		return 0, gzipText
	case media == "application/vnd.google.protobuf" && bytes.IndexByte(body, 0) >= 0:
		return 0, protText
	case media == "application/openmetrics-text":
		return formatOpenMetrics, ""
	}
	return formatText, ""
}

// isJSONObject tells {"key": ...} from {"utf8.metric","label"="value"} 1.
func isJSONObject(b []byte) bool {
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	b = bytes.TrimLeft(b[1:], " \t\r\n")
	if len(b) > 0 && b[0] == '}' {
		return len(bytes.TrimSpace(b[1:])) == 0
	}
	if len(b) == 0 || b[0] != '"' {
		return false
	}
	_, n := quotedLen(b)
	if n == 0 {
		return false
	}
	b = bytes.TrimLeft(b[n:], " \t\r\n")
	return len(b) > 0 && b[0] == ':'
}

func mediaType(contentType string) string {
	if media, _, err := mime.ParseMediaType(contentType); err == nil {
		return media
	}
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// contentWarning notes once that a content type does not fit the body.
func (d *Decoder) contentWarning(s *metric.Snapshot, b Body) {
	if d.said["content_type"] || b.ContentType == usualType {
		return
	}
	switch mediaType(b.ContentType) {
	case "text/plain", "application/openmetrics-text":
	default:
		d.once(s, "content_type", "Content-Type is "+quote(b.ContentType, 100)+"; the body was read as Prometheus text")
	}
}
