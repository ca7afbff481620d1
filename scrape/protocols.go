package scrape

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// protocol is a name that Options.Protocols knows, with the media types it stands for, the preferred one first.
type protocol struct {
	name   string
	format format
	media  []string
}

const (
	mediaText004  = "text/plain;version=0.0.4"
	mediaText100  = "text/plain;version=1.0.0;escaping=allow-utf-8"
	mediaOpen001  = "application/openmetrics-text;version=0.0.1"
	mediaOpen100  = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8"
	mediaProtobuf = protobufMedia + ";proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

// knownProtocols returns our names, then those of Prometheus' scrape_protocols.
func knownProtocols() []protocol {
	return []protocol{
		{"text", formatText, []string{mediaText004}},
		{"openmetrics", formatOpenMetrics, []string{mediaOpen100, mediaOpen001}},
		{"protobuf", formatProtobuf, []string{mediaProtobuf}},
		{"PrometheusText0.0.4", formatText, []string{mediaText004}},
		{"PrometheusText1.0.0", formatText, []string{mediaText100}},
		{"OpenMetricsText0.0.1", formatOpenMetrics, []string{mediaOpen001}},
		{"OpenMetricsText1.0.0", formatOpenMetrics, []string{mediaOpen100}},
		{"PrometheusProto", formatProtobuf, []string{mediaProtobuf}},
	}
}

// defaultProtocols is what targets are asked for when nobody says otherwise.
func defaultProtocols() []string { return []string{"text", "openmetrics"} }

// AcceptHeader returns the Accept header that asks for protocols in that order of preference; nil is the
// default, text before openmetrics. It refuses names it does not know, and a name given twice.
//
// What comes after a text format is covered by the last item, */*, and not named: every server has text, so one
// that honours the order answers with that, while some, Python's prometheus_client among them, take the mere
// mention of OpenMetrics, or of text 1.0.0, for a wish; both cost it more than text 0.0.4.
func AcceptHeader(protocols []string) (string, error) {
	if len(protocols) == 0 {
		protocols = defaultProtocols()
	}
	var media []string
	text := false
	for i, name := range protocols {
		known := knownProtocols()
		at := slices.IndexFunc(known, func(p protocol) bool { return p.name == name })
		if at < 0 {
			var names []string
			for _, p := range known {
				names = append(names, p.name)
			}
			return "", fmt.Errorf("choose protocols: %q is not known, want some of %s", metric.Clean(name, 40),
				strings.Join(names, ", "))
		}
		if slices.Contains(protocols[:i], name) {
			return "", fmt.Errorf("choose protocols: %s is named twice", name)
		}
		if text && known[at].format != formatText {
			continue
		}
		media = append(media, known[at].media...)
		text = text || known[at].format == formatText
	}
	var b strings.Builder
	for i, m := range media {
		b.WriteString(m)
		if i > 0 {
			b.WriteString(";q=" + strconv.FormatFloat(float64(10-min(i, 8))/10, 'g', -1, 64))
		}
		b.WriteByte(',')
	}
	return b.String() + "*/*;q=0.1", nil
}

// pin asks from now on for the format that the target has sent: one format per
// target for the whole run, so that names and bounds stay the same.
func (f *fetcher) pin(x format) {
	if f.pinned || f.ownAccept {
		return
	}
	f.pinned = true
	if accept, err := AcceptHeader([]string{x.String()}); err == nil {
		f.request.Header = f.request.Header.Clone()
		f.request.Header.Set("Accept", accept)
	}
}

// orProtocols is the list of a target, or that of all.
func orProtocols(own, all []string) []string {
	if len(own) > 0 {
		return own
	}
	return all
}

// setAccept puts our Accept header in, unless the target has one of its own.
func (f *fetcher) setAccept(header http.Header, accept string) {
	if _, f.ownAccept = header["Accept"]; !f.ownAccept {
		header.Set("Accept", accept)
	}
}
