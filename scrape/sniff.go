package scrape

import (
	"bytes"
	"encoding/binary"
	"mime"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

const (
	// usualType is what nearly all servers send; knowing it saves parsing it.
	usualType = "text/plain; version=0.0.4; charset=utf-8"

	jsonText = "body is JSON, not Prometheus text; TensorRT-LLM has its metrics at /prometheus/metrics, " +
		"TorchServe's management API is on another port than its metrics"
	htmlText = "body looks like HTML, a login or error page; check the path, and authentication (--header, " +
		"--bearer-token-file, --basic-auth-file)"
	gzipText = "body is gzip although its headers do not say so"

	protobufMedia = "application/vnd.google.protobuf"
)

// sniff finds the format of a body, or why it is none. The bytes decide;
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
	case isProtobuf(body):
		return formatProtobuf, ""
	case media == protobufMedia && bytes.IndexByte(body, 0) >= 0:
		return 0, "Content-Type is protobuf, and the body is neither a protobuf metric family nor text"
	case media == "application/openmetrics-text":
		return formatOpenMetrics, ""
	}
	return formatText, ""
}

// isProtobuf reports whether a body begins like a delimited MetricFamily: a length, then field 1, the name. No
// text does: its second or third byte would be a line feed within the first name.
func isProtobuf(body []byte) bool {
	size, n := binary.Uvarint(body)
	if n <= 0 || size < 3 || len(body) < n+2 || body[n] != fieldName {
		return false
	}
	name, m := binary.Uvarint(body[n+1:])
	return m > 0 && name > 0 && name <= size && name <= 1<<20
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
	n := quotedLen(b)
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
func (d *Decoder) contentWarning(s *metric.Snapshot, b Body, f format) {
	if d.said["content_type"] || b.ContentType == usualType && f != formatProtobuf {
		return
	}
	switch mediaType(b.ContentType) {
	case "text/plain", "application/openmetrics-text":
		if f == formatProtobuf {
			d.once(s, "content_type", "Content-Type is "+quote(b.ContentType,
				100)+", and the body is protobuf; it was read as protobuf")
		}
	case protobufMedia:
		if f != formatProtobuf {
			d.once(s, "content_type", "Content-Type is "+quote(b.ContentType,
				100)+", and the body is text; it was read as Prometheus text")
		}
	default:
		d.once(s, "content_type", "Content-Type is "+quote(b.ContentType, 100)+"; the body was read as Prometheus text")
	}
}
