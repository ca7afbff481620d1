package rundb

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/scrapestat/scrapestat/metric"
)

const (
	// Blocks grow to segmentMemory shared among the targets, before compression,
	// within these bounds: large ones compress better.
	segmentMemory   = 3 << 20
	minSegmentBytes = 32 << 10
	maxSegmentBytes = 128 << 10
	// segmentKeys is how many times its keyframe a block holds at least, so that
	// the keyframes of a target with very many series do not outweigh the rest.
	segmentKeys = 12
)

// segment collects the polls of one target that will become a block.
type segment struct {
	sections
	pollState
	target, first int // first: number of its first poll within the target
	polls, stored int
	fromNS, toNS  int64
	dict          dictSize // size of the dictionary before it
	tail          int64
	keyBytes      int
	room          int // its limit, as Writer.room counts it
}

// limit is the size at which a segment is full in a run of so many targets.
func (g *segment) limit(targets int) int {
	return max(min(segmentMemory/targets, maxSegmentBytes), minSegmentBytes, segmentKeys*g.keyBytes)
}

// lengths is where the sections of a segment ended before a poll was appended.
type lengths [4]int

func (s *sections) lengths() lengths {
	return lengths{len(s.head), len(s.op), len(s.num), len(s.bits)}
}

// appendTail appends a copy of the poll that begins at from in the sections of g as a record of a tail row:
// target, poll, number of polls of the segment before it; for the first of a segment the size of the dictionary
// before it; four lengths, four sections.
func (g *segment) appendTail(tail []byte, poll int, from lengths) []byte {
	tail = binary.AppendUvarint(tail, uint64(g.target))
	tail = binary.AppendUvarint(tail, uint64(poll))
	tail = binary.AppendUvarint(tail, uint64(poll-g.first))
	if poll == g.first {
		tail = binary.AppendUvarint(tail, uint64(g.dict.families))
		tail = binary.AppendUvarint(tail, uint64(g.dict.series))
		tail = binary.AppendUvarint(tail, uint64(g.dict.slots))
	}
	all := [4][]byte{g.head[from[0]:], g.op[from[1]:], g.num[from[2]:], g.bits[from[3]:]}
	for _, b := range all {
		tail = binary.AppendUvarint(tail, uint64(len(b)))
	}
	for _, b := range all {
		tail = append(tail, b...)
	}
	return tail
}

// tailRecord is one poll of a tail row.
type tailRecord struct {
	target, poll int
	before       int // polls of the same segment before it
	dict         dictSize
	sections
}

// dictSize is the number of entries of a dictionary, or of a part of one.
type dictSize struct{ families, series, slots int }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealTail appends the checksum that ends a tail row.
func sealTail(data []byte) []byte {
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
}

// readTail calls f with each record of a tail row. The sections belong to data.
func readTail(data []byte, f func(tailRecord)) error {
	if len(data) < 4 {
		return errShort
	}
	body := data[:len(data)-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(data[len(body):]) {
		return errors.New("checksum does not match")
	}
	for len(body) > 0 {
		rec, rest, err := cutTailRecord(body)
		if err != nil {
			return err
		}
		body = rest
		f(rec)
	}
	return nil
}

// cutTailRecord splits the first record off.
func cutTailRecord(body []byte) (rec tailRecord, rest []byte, err error) {
	number := func() int {
		v, n := binary.Uvarint(body)
		if n <= 0 || v > maxPoll {
			err, body = errShort, nil
			return 0
		}
		body = body[n:]
		return int(v)
	}
	rec.target, rec.poll, rec.before = number(), number(), number()
	if rec.before == 0 {
		rec.dict = dictSize{number(), number(), number()}
	}
	lens := [4]int{number(), number(), number(), number()}
	for i, p := range []*[]byte{&rec.head, &rec.op, &rec.num, &rec.bits} {
		if err != nil || lens[i] > len(body) {
			return rec, nil, errShort
		}
		*p, body = body[:lens[i]:lens[i]], body[lens[i]:]
	}
	return rec, body, err
}

// maxPoll is the largest number that fits into its half of a key.
const maxPoll = 1<<31 - 1

// targetState is what the writer keeps of a target.
type targetState struct {
	enc    encoder
	polls  int
	open   *segment
	bodies int
	good   bool // a good body was kept
}

// append encodes one poll into the open segment g and returns where it begins.
func (t *targetState) append(g *segment, s *metric.Snapshot, incident bool) lengths {
	from := g.lengths()
	flags := byte(0)
	if incident {
		flags |= flagIncident
	}
	entries := 0
	if s.Outcome.Stored() {
		key := g.stored == 0
		var more byte
		entries, more = t.enc.appendSamples(&g.sections, &s.Delta, key)
		flags |= more
		if key {
			g.keyBytes = g.size() - from[0] - from[1] - from[2] - from[3]
		}
		g.stored++
	}
	g.head = g.appendPoll(g.head, s, flags)
	if s.Outcome.Stored() {
		g.head = binary.AppendUvarint(g.head, uint64(entries))
	}
	at := s.AtNS()
	if g.polls == 0 {
		g.fromNS, g.toNS = at, at
	}
	g.fromNS, g.toNS = min(g.fromNS, at), max(g.toNS, at)
	g.polls++
	t.polls++
	return from
}
