package rundb

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/scrapestat/scrapestat/metric"
)

const (
	// badBodies is how many bodies of Partial and NotPrometheus polls are kept
	// per target; the first good one is kept besides.
	badBodies = 4
	// maxBody is the largest body that is kept.
	maxBody = 16 << 20
)

// incidentRow is what of a poll is not in its block: texts.
type incidentRow struct {
	key             int64
	atNS            int64
	outcome         metric.Outcome
	status, lines   int
	err             string
	drops, warnings any // JSON or nil
}

type bodyRow struct {
	key  int64
	body []byte
}

// noteIncident queues the row of a poll that was not plainly OK, and a copy of
// its body if that is worth keeping. It says whether there is a row.
func (w *Writer) noteIncident(t *targetState, s *metric.Snapshot) bool {
	id := key(s.Target, t.polls)
	good := s.Outcome == metric.OK && !t.good
	bad := (s.Outcome == metric.Partial || s.Outcome == metric.NotPrometheus) && t.bodies < badBodies
	if (good || bad) && s.Body != nil && len(s.Body) <= maxBody {
		w.pending.bodies = append(w.pending.bodies, bodyRow{id, bytes.Clone(s.Body)})
		w.pending.bytes += len(s.Body)
		if good {
			t.good = true
		} else {
			t.bodies++
		}
	}
	if s.Outcome == metric.OK && s.Err == "" && len(s.Drops) == 0 && len(s.Warnings) == 0 {
		return false
	}
	row := incidentRow{key: id, atNS: s.AtNS(), outcome: s.Outcome, status: s.Status, lines: s.Lines, err: s.Err}
	row.drops, row.warnings = jsonOrNil(s.Drops), jsonOrNil(s.Warnings)
	w.pending.incidents = append(w.pending.incidents, row)
	w.pending.bytes += 256
	return true
}

// jsonOrNil encodes a list, nil for an empty one. Lists of drops and warnings
// always have a JSON form.
func jsonOrNil[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	b, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// labelsValue is the column of a label set: a JSON object, or the binary form
// where a name or value is not valid UTF-8, which JSON cannot hold.
func labelsValue(l metric.Labels) (any, error) {
	m := make(map[string]string)
	for name, value := range l.All() {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return l.MarshalBinary()
		}
		m[name] = value
	}
	b, err := json.Marshal(m)
	return string(b), err
}
