package rundb

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
)

// sumsVersion is the first version of the schema whose rows have a checksum: the
// last column, crc, of each table in sumTables.
const sumsVersion = 4

// kindVersion is the first version whose marks have a kind.
const kindVersion = 5

// suffixVersion is the first version whose families have a suffix.
const suffixVersion = 6

// sumTable is a table whose rows have a checksum, of these columns in this order. A kind is a letter for each: k
// the key that is the row's number in SQLite, i an integer, f a number, t a text, b a BLOB, a a text or a BLOB, o a
// text or NULL. Tables without k whose name begins with "+" have a number that SQLite makes.
type sumTable struct{ name, columns, kinds string }

// sumTables are all tables but those of the client's side.
func sumTables() []sumTable {
	return []sumTable{
		{"meta", "key, value", "tt"},
		{"target", "id, name, url, source", "kttt"},
		{"family", "id, name, type, help, unit, suffix", "kttttt"},
		{"series", "id, family, labels", "kia"},
		{"slots", "id, slots, data", "kib"},
		{"block", "id, polls, stored, from_ns, to_ns, families, series, slots, head, op, num, bits", "kiiiiiiibbbb"},
		{"tail", "id, data", "kb"},
		{"incident", "id, at_ns, outcome, status, err, lines, drops, warnings", "kititioo"},
		{"body", "id, bytes, zstd", "kib"},
		{"observation", "target, poll, n, line, series, at_ns, value, request", "iiiiiifo"},
		{"exemplar", "id, seen_ns, at_ns, value, labels", "kiifa"},
		{"target_labels", "target, labels", "ka"},
		{"life", "target, at_ns, gone, reason", "+iiit"},
		{"mark", "at_ns, name, own, kind", "+itit"},
		{"warning", "code, text", "+tt"},
		{"dictionary", "data", "+b"},
		{"clock_offset", "at_ns, offset_ns, uncertainty_ns", "+iii"},
		{"mark", "at_ns, name, own", "+iti"},              // of version 4
		{"family", "id, name, type, help, unit", "ktttt"}, // of versions 4 and 5
		// Without checksums:
		{"slot", "series, role, bound, text, integer", ""}, // of version 1
		{"events", "id, sample_uuid, event_type, timestamp_ns, conversation_id, turn, data", ""},
		{"requests", "", ""}, {"clock", "", ""}, {"event_stats", "", ""}, {"event_writer", "", ""},
		{"server_source", "", ""}, {"server_place", "", ""}, {"server_request", "", ""},
	}
}

// tableOf returns the table of a name, in any case of its letters, if that is one of ours.
func tableOf(name string) (t sumTable, ok bool) {
	all := sumTables()
	if i := slices.IndexFunc(all, func(t sumTable) bool { return strings.EqualFold(t.name, name) }); i >= 0 {
		return all[i], true
	}
	return sumTable{name: name}, false
}

// insertInto is the statement that inserts a row of a table and its checksum.
func insertInto(table string) string {
	t, _ := tableOf(table)
	return "INSERT INTO " + t.name + " (" + t.columns + ", crc) VALUES (?" + strings.Repeat(", ?",
		1+strings.Count(t.columns, ",")) + ")"
}

// summed returns the values of a row with its checksum behind them.
func summed(table string, values ...any) []any {
	return append(values, rowSum(appendRow(nil, table, values)))
}

// rowSum is the CRC-32C of an encoded row, as SQLite keeps it in the fewest bytes.
func rowSum(row []byte) int64 { return int64(int32(crc32.Checksum(row, castagnoli))) }

// The kinds of a value in an encoded row.
const (
	valueNull  = 'n'
	valueInt   = 'i'
	valueFloat = 'f'
	valueText  = 't'
	valueBlob  = 'b'
)

// appendRow appends the name of a table and the values of a row of it, without a key that SQLite made. A number
// that is an integer is one also in a column of REAL, as SQLite stores it so.
func appendRow(dst []byte, table string, values []any) []byte {
	dst = appendValue(dst, table)
	for _, v := range values {
		dst = appendValue(dst, v)
	}
	return dst
}

func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, valueNull)
	case bool:
		if v {
			return appendValue(dst, int64(1))
		}
		return appendValue(dst, int64(0))
	case int:
		return appendValue(dst, int64(v))
	case int64:
		return binary.BigEndian.AppendUint64(append(dst, valueInt), uint64(v))
	case float64:
		if i := int64(v); float64(i) == v {
			return appendValue(dst, i)
		}
		return binary.BigEndian.AppendUint64(append(dst, valueFloat), math.Float64bits(v))
	case string:
		return append(binary.AppendUvarint(append(dst, valueText), uint64(len(v))), v...)
	case []byte:
		return append(binary.AppendUvarint(append(dst, valueBlob), uint64(len(v))), v...)
	}
	panic(fmt.Sprintf("a column of type %T", v)) // no row of ours has one
}

// queryer is a database, a connection or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// errRow is what a row says whose checksum is another.
var errRow = errors.New("a row is damaged")

// The most that a table may have which is read whole when a recording is opened, and what a row of it costs.
const (
	maxTableBytes = 64 << 20
	rowBytes      = 512
)

// each calls next for the rows of a table that rest chooses; scan takes all its columns. Of a row whose checksum
// does not match scan gives what there is, and a damageError. Without a transaction the rows are read by themselves.
func (r *Run) each(ctx context.Context, tx queryer, table, rest string, args []any,
	next func(scan func(...any) error) error) error {
	t, _ := tableOf(table)
	switch {
	case table == "mark" && r.version < kindVersion:
		t.columns = strings.TrimSuffix(t.columns, ", kind")
	case table == "family" && r.version < suffixVersion:
		t.columns = strings.TrimSuffix(t.columns, ", suffix")
	}
	crc := ""
	if r.version >= sumsVersion {
		crc = ", crc"
	}
	room := math.MaxInt
	switch table {
	case "meta", "target", "target_labels", "life", "mark", "warning", "clock_offset":
		room = maxTableBytes
	}
	if tx == nil {
		c, err := r.conn(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		tx = c
	}
	rows, err := tx.QueryContext(ctx, "SELECT "+t.columns+crc+" FROM "+table+" "+rest, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 1 + strings.Count(t.columns, ",")
	values, to := make([]any, n+min(len(crc), 1)), make([]any, n+min(len(crc), 1))
	for i := range values {
		to[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		row := appendRow(nil, table, values[:n])
		if room -= len(row) + rowBytes; room < 0 {
			return fmt.Errorf("table %s has more rows than a recording of scrapestat: %d MiB of them", table, maxTableBytes>>20)
		}
		var damage error
		if crc != "" && !holdsSum(table, row, values[n]) {
			damage = damageError{fmt.Errorf("table %s: %w", table, errRow)}
		}
		scan := func(dst ...any) error { return cmp.Or(rows.Scan(append(dst, to[n:]...)...), damage) }
		if err := next(scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// holdsSum reports whether sum is the checksum of an encoded row, or 0 in a mark: that one a person has set by hand.
func holdsSum(table string, row []byte, sum any) bool {
	return sum == any(rowSum(row)) || sum == any(int64(0)) && table == "mark"
}

// cutRow is the inverse of appendRow: the name of the table and the values, nil of what is no row.
func cutRow(b []byte) (values []any) {
	for len(b) > 0 {
		kind, n := b[0], uint64(8)
		b = b[1:]
		switch kind {
		case valueNull:
			n = 0
		case valueText, valueBlob:
			size, used := binary.Uvarint(b)
			if used <= 0 {
				return nil
			}
			n, b = size, b[used:]
		}
		if n > uint64(len(b)) {
			return nil
		}
		v := b[:n:n]
		b = b[n:]
		switch kind {
		case valueNull:
			values = append(values, nil)
		case valueInt:
			values = append(values, int64(binary.BigEndian.Uint64(v)))
		case valueFloat:
			values = append(values, math.Float64frombits(binary.BigEndian.Uint64(v)))
		case valueText:
			values = append(values, string(v))
		case valueBlob:
			values = append(values, v)
		default:
			return nil
		}
	}
	return values
}
