package torchserve

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/scrapestat/scrapestat/metric"
)

// Line is one metric line as it was written.
type Line struct {
	Name, Unit string
	Value      float64
	Dimensions []metric.Label // in the order of the line
	Type       metric.Type    // of the tag, Unknown without one
	Host       string
	Requests   []string // ids of the requests it was measured for; nil when it names none

	// PrefixNS is the time before the line, read as if it were UTC; 0 without one.
	PrefixNS int64
	// StampS is the timestamp in the line, in seconds since 1970; 0 without one.
	StampS int64

	text []byte // the metric part, which is equal wherever the line is written
}

// ErrNoMetric is what ParseLine returns for a line that is no metric line, or an echo of one that is logged elsewhere.
var ErrNoMetric = errors.New("no metric line")

// The limits on a line; one that exceeds them is bad.
const (
	maxLine       = 64 << 10
	maxName       = 1024
	maxDimensions = 128
)

// ParseLine reads a line without its line feed. It keeps nothing of it but copies. raw also takes the lines that
// workers print themselves, "[METRICS]..." at the start, which TorchServe logs again in its own form. The error is
// ErrNoMetric for what is not meant, and says what is wrong with a metric line that is damaged.
func ParseLine(line []byte, raw bool) (Line, error) {
	line = bytes.TrimRight(line, "\r")
	if len(line) > maxLine {
		return Line{}, fmt.Errorf("parse line: it has %d bytes, more than %d", len(line), maxLine)
	}
	var l Line
	text, meant := l.cutPrefix(line)
	isRaw := bytes.HasPrefix(text, []byte("[METRICS]"))
	if !meant || isRaw && !raw {
		return Line{}, ErrNoMetric
	}
	text = bytes.TrimPrefix(text, []byte("[METRICS]"))
	head, rest, ok := bytes.Cut(text, []byte("|#"))
	colon := bytes.LastIndexByte(head, ':')
	if !ok || colon < 0 || !bytes.Contains(text, []byte("|#hostname:")) {
		return Line{}, ErrNoMetric
	}
	dot := bytes.LastIndexByte(head[:colon], '.')
	if dot < 1 || dot == colon-1 || bytes.IndexByte(head[:colon], ':') >= 0 || bytes.IndexByte(head[:dot], '=') >= 0 {
		return Line{}, ErrNoMetric
	}
	if !utf8.Valid(text) || dot > maxName || colon-dot > maxName {
		return Line{}, errors.New("parse line: it is not UTF-8, or its name or unit is too long")
	}
	l.Name, l.Unit, l.text = string(head[:dot]), string(head[dot+1:colon]), bytes.Clone(text)
	value, ok := parseValue(string(head[colon+1:]))
	if !ok {
		return Line{}, fmt.Errorf("parse line: %s has value %.40q, want a number", l.Name, head[colon+1:])
	}
	l.Value = value
	return l, l.parseRest(string(rest), isRaw)
}

// cutPrefix takes time, level, thread and logger off a line. meant is false when
// the logger is one that only echoes metrics.
func (l *Line) cutPrefix(line []byte) (text []byte, meant bool) {
	const layout = "2006-01-02T15:04:05.000"
	if len(line) <= len(layout) || line[4] != '-' || line[13] != ':' {
		return bytes.TrimPrefix(line, []byte("- ")), true
	}
	stamp := []byte(string(line[:len(layout)]))
	if stamp[10] == ' ' {
		stamp[10] = 'T'
	}
	if stamp[19] == ',' {
		stamp[19] = '.'
	}
	at, err := time.Parse(layout, string(stamp))
	if err != nil {
		return line, true
	}
	if y := at.Year(); y >= 1970 && y < 2242 { // what nanoseconds hold
		l.PrefixNS = at.UnixNano()
	}
	rest := bytes.TrimLeft(line[len(layout):], " ")
	if len(rest) > 0 && rest[0] == '[' && !bytes.HasPrefix(rest, []byte("[METRICS]")) {
		header, text, ok := bytes.Cut(rest, []byte(" - "))
		logger := header[bytes.LastIndexByte(header, ' ')+1:]
		return text, ok && (string(logger) == "TS_METRICS" || string(logger) == "MODEL_METRICS")
	}
	return bytes.TrimPrefix(rest, []byte("- ")), true
}

// javaNumber is a number as Java prints one; strconv takes more, such as hexadecimal.
var javaNumber = regexp.MustCompile(`^(?:NaN|[+-]?(?:Infinity|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?))$`)

func parseValue(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && javaNumber.MatchString(s)
}

// parseRest reads dimensions, tag, host and tail.
func (l *Line) parseRest(rest string, raw bool) error {
	dims, rest, ok := strings.Cut(rest, "|#")
	if strings.HasPrefix(dims, "hostname:") && !ok {
		dims, rest = "", dims // a line without dimensions
	}
	if tag, after, tagged := strings.Cut(rest, "|#"); tagged && strings.HasPrefix(tag, "type:") {
		if l.Type, ok = metric.ParseType(strings.ToLower(tag[len("type:"):])); !ok {
			return fmt.Errorf("parse line: %s has type %.40q, want COUNTER, GAUGE or HISTOGRAM", l.Name, tag)
		}
		rest = after
	}
	if err := l.parseDimensions(dims); err != nil {
		return err
	}
	rest, ok = strings.CutPrefix(rest, "hostname:")
	if !ok {
		return fmt.Errorf("parse line: %s has no hostname after its dimensions", l.Name)
	}
	var tail string
	l.Host, tail, _ = strings.Cut(rest, ",")
	if tail == "" {
		return nil
	}
	if raw {
		stamp, ids, _ := strings.Cut(tail, ",")
		l.setRequests(ids)
		return l.setStamp(stamp)
	}
	// A list of request ids holds commas, so the timestamp is found from the right.
	i := strings.LastIndex(","+tail, ",timestamp:")
	if i < 0 {
		return fmt.Errorf("parse line: %s ends in %.60q, want a timestamp", l.Name, tail)
	}
	if i > 0 {
		ids, ok := strings.CutPrefix(tail[:i-1], "requestID:")
		if !ok {
			return fmt.Errorf("parse line: %s has %.60q after its host, want requestID or timestamp", l.Name, tail)
		}
		l.setRequests(ids)
	}
	return l.setStamp(tail[i+len("timestamp:"):])
}

func (l *Line) parseDimensions(dims string) error {
	if dims == "" {
		return nil
	}
	for dim := range strings.SplitSeq(dims, ",") {
		name, value, ok := strings.Cut(dim, ":")
		if !ok || name == "" || len(l.Dimensions) == maxDimensions {
			return fmt.Errorf("parse line: %s has dimension %.60q, want name:value, at most %d of them", l.Name, dim,
				maxDimensions)
		}
		l.Dimensions = append(l.Dimensions, metric.Label{Name: name, Value: value})
	}
	return nil
}

func (l *Line) setRequests(ids string) {
	if ids != "" && ids != "null" {
		l.Requests = strings.Split(ids, ",")
	}
}

func (l *Line) setStamp(s string) error {
	if s == "null" {
		return nil
	}
	n, err := strconv.ParseUint(s, 10, 33) // until the year 2242
	if err != nil {
		return fmt.Errorf("parse line: %s has timestamp %.40q, want seconds since 1970 or null", l.Name, s)
	}
	l.StampS = int64(n)
	return nil
}

// AtNS is when the line was written, in nanoseconds since 1970, or 0 when it does not say. The zone of the prefix is
// what brings it to the timestamp in steps of 15 minutes; a prefix alone is taken with the zone of an earlier line.
func (l *Line) AtNS(zone *Zone) int64 {
	switch {
	case l.StampS == 0 && l.PrefixNS == 0:
		return 0
	case l.StampS == 0:
		return l.PrefixNS - zone.offsetNS
	case l.PrefixNS == 0:
		return l.StampS * 1e9
	}
	const quarter = int64(15 * time.Minute)
	away := l.PrefixNS - l.StampS*1e9
	offset := (away + quarter/2) / quarter * quarter
	if away < -quarter/2 {
		offset = (away - quarter/2) / quarter * quarter
	}
	at := l.PrefixNS - offset
	if d := at - l.StampS*1e9; d < -2e9 || d > 2e9 {
		return l.StampS * 1e9
	}
	zone.offsetNS = offset
	return at
}

// Zone is the time zone of a log, as far as its lines have shown it. The zero value is UTC.
type Zone struct{ offsetNS int64 }
