package rundb

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
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
	key    int64
	size   int
	packed []byte
}

// wants reports whether the body of a poll is worth keeping.
func (t *targetState) wants(s *metric.Snapshot) bool {
	good := s.Outcome == metric.OK && !t.good
	bad := (s.Outcome == metric.Partial || s.Outcome == metric.NotPrometheus) && t.bodies < badBodies
	return (good || bad) && s.Body != nil && len(s.Body) <= maxBody
}

// packBody compresses the body of a poll, nil if it is not kept. That happens before the poll gets in line, in
// the goroutine of its target: at the start of a run there is one of every target, and waiting for the disk as
// they are they would be a large part of the memory of a run.
func (w *Writer) packBody(s *metric.Snapshot) []byte {
	w.mu.Lock()
	keep := s.Target >= 0 && s.Target < len(w.targets) && w.targets[s.Target].wants(s)
	w.mu.Unlock()
	if !keep {
		return nil
	}
	return w.packer.EncodeAll(s.Body, make([]byte, 0, len(s.Body)/8))
}

// countedWarning is a warning about the run whose text has how often it was.
type countedWarning struct {
	n   int
	row int64
}

// add writes the warning, or the newest text of it.
func (x *countedWarning) add(c *conn, code, text string) error {
	var r sql.Result
	var err error
	if x.n == 0 {
		if r, err = c.warning.Exec(summed("warning", code, text)...); err == nil {
			x.row, err = r.LastInsertId()
		}
	} else {
		row := summed("warning", code, fmt.Sprintf("%s (%d times)", text, x.n+1))
		err = c.exec("UPDATE warning SET code = ?, text = ?, crc = ? WHERE id = ?", append(row, x.row)...)
	}
	if err == nil {
		x.n++
	}
	return err
}

// keepBody writes a body unless the file is as large as it may be.
func (c *conn) keepBody(r bodyRow) error {
	var pages, size int64
	err := c.c.QueryRowContext(context.Background(),
		"SELECT page_count, page_size FROM pragma_page_count, pragma_page_size").Scan(&pages, &size)
	if err != nil {
		return err
	}
	if pages*size+int64(len(r.packed)) > c.maxBytes {
		return c.leftOut.add(c, "recording_limit", fmt.Sprintf("the body of an answer was not kept, its samples were: the "+
			"recording would be larger than %d bytes; raise --max-recording", c.maxBytes))
	}
	_, err = c.body.Exec(summed("body", r.key, r.size, r.packed)...)
	return err
}

// noteIncident queues the row of a poll that was not plainly OK, and its body
// if that is kept. It reports whether there is a row.
func (w *Writer) noteIncident(t *targetState, s *metric.Snapshot, body []byte) bool {
	id := key(s.Target, t.polls)
	if body != nil {
		w.pending.bodies = append(w.pending.bodies, bodyRow{id, len(s.Body), body})
		w.pending.bytes += len(body)
		if s.Outcome == metric.OK {
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

// jsonOrNil encodes a list, nil for an empty one. Lists of drops and warnings always have a JSON form.
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
	b := append(make([]byte, 0, 128), '{')
	for name, value := range l.All() {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return l.MarshalBinary()
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(appendJSON(b, name), ':')
		b = appendJSON(b, value)
	}
	return string(append(b, '}')), nil
}

// appendJSON appends a string of valid UTF-8 as encoding/json writes it. A fleet has hundreds of thousands of
// series to write when it starts, and hardly one of their names and values has a character to escape.
func appendJSON(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a string never fails
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
