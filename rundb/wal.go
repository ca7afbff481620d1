package rundb

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/scrapestat/scrapestat/internal/sqlitefile"
)

// The write-ahead log of SQLite: a head, then frames, each with an image of a page. SQLite reads up to the first frame
// whose checksum does not match and says nothing of what comes behind it.
const (
	walHead   = 32
	frameHead = 24
	sector    = 512
)

// walLog is what a log holds.
type walLog struct {
	frames []walFrame // those of its last round
	broken int        // the first that is damaged, or -1
	cut    bool       // it ends within a page
	size   int64
}

type walFrame struct {
	page uint32
	at   int64 // of its image
}

// maxZeros is how many frames in a row may be of no page: a file of them is none of SQLite's, and takes no room.
const maxZeros = 1 << 14

// walSum adds b to a checksum, in the order of bytes that the head of the log says.
func walSum(order binary.ByteOrder, s [2]uint32, b []byte) [2]uint32 {
	for ; len(b) >= 8; b = b[8:] {
		s[0] += order.Uint32(b) + s[1]
		s[1] += order.Uint32(b[4:]) + s[0]
	}
	return s
}

// readLog reads a log of so many bytes. Frames of an earlier round, which the last one has not written over yet, end
// it as its end does; a frame is damaged when either only its checksum or only its round is right, or when it is
// followed by one of the last round.
func readLog(from io.Reader, size int64) (l walLog, err error) {
	l.broken, l.size = -1, size
	// A kill tears between the head of a frame and its page, a full disk at a sector: what was torn so was never
	// committed.
	rest := (size - walHead) % (frameHead + pageSize)
	l.cut = size > 0 && (size < walHead || rest != 0 && rest != frameHead) && size%sector != 0
	r := bufio.NewReaderSize(from, 1<<20)
	head, b := make([]byte, walHead), make([]byte, frameHead+pageSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return l, ignoreEnd(err)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if head[3]&1 != 0 {
		order = binary.BigEndian
	}
	stored := func(b []byte) [2]uint32 { return [2]uint32{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])} }
	sum, round := stored(head[24:]), bytes.Clone(head[16:24])
	headBad := walSum(order, [2]uint32{}, head[:24]) != sum || head[0] != 0x37
	old := -1 // the first frame that may be of an earlier round
	zeros := 0
	for i := 0; ; i++ {
		if _, err := io.ReadFull(r, b); err != nil {
			return l, ignoreEnd(err)
		}
		if headBad && i == 0 {
			l.broken, round = 0, bytes.Clone(b[8:16])
		}
		whole := walSum(order, walSum(order, sum, b[:8]), b[frameHead:]) == stored(b[16:])
		sum = stored(b[16:])
		now := bytes.Equal(b[8:16], round)
		if binary.BigEndian.Uint32(b) != 0 { // of a page
			zeros = 0
		} else if zeros++; zeros > maxZeros {
			l.broken = cmp.Or(max(l.broken, 0), max(old, 0))
			l.size = walHead + int64(i)*(frameHead+pageSize)
			return l, nil
		}
		switch {
		case l.broken >= 0:
		case old >= 0 && now:
			l.broken = old
		case old < 0 && whole != now:
			l.broken = i
		case old < 0 && !whole:
			old = i
		}
		if now || whole && old < 0 {
			l.frames = append(l.frames, walFrame{binary.BigEndian.Uint32(b), walHead + int64(i)*(frameHead+pageSize) +
				frameHead})
		}
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// openStore opens the files of the recording in dir to be read without SQLite. The caller closes what it returns.
func openStore(dir string) (s *pageStore, l walLog, closeAll func(), err error) {
	path := filepath.Join(dir, FileName)
	db, err := sqlitefile.OpenFile(path)
	if err != nil {
		return nil, l, nil, err
	}
	closeAll = func() { db.Close() } // read only: there is nothing to lose
	info, err := db.Stat()
	if err != nil {
		closeAll()
		return nil, l, nil, err
	}
	l.broken = -1
	s = &pageStore{db: db, pages: uint32(min((info.Size()+pageSize-1)/pageSize, 1<<32-2)), newest: map[uint32]int64{}}
	log, err := sqlitefile.OpenFile(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return s, l, closeAll, nil
	}
	if err == nil {
		s.log, closeAll = log, func() { db.Close(); log.Close() }
		if info, err = log.Stat(); err == nil {
			l, err = readLog(log, info.Size())
		}
	}
	if err != nil {
		closeAll()
		return nil, l, nil, err
	}
	for _, f := range l.frames {
		s.newest[f.page] = f.at
	}
	return s, l, closeAll, nil
}

// walDamage is damage of a log, and what it costs.
type walDamage struct {
	text   string
	broken bool        // there are frames that SQLite leaves out
	polls  map[int]int // of each target, how many it had recorded
}

// checkLog reads the log of a recording before SQLite does, and finds out what it would leave out in silence. It
// looks until it has seen the same three times, as the recording may be written meanwhile.
func checkLog(dir string) (d *walDamage, err error) {
	if !holds(dir, FileName+"-wal") {
		return nil, nil
	}
	var before walLog
	for same := 0; same < 3; same++ {
		s, l, closeAll, err := openStore(dir)
		if err != nil {
			return nil, err
		}
		if l.broken < 0 && !l.cut {
			closeAll()
			return nil, nil
		}
		if l.broken != before.broken || l.size != before.size {
			same = 0
		}
		before, d = l, s.damage(l)
		closeAll()
	}
	return d, nil
}

// damage tells what the frames behind the damage of a log hold.
func (s *pageStore) damage(l walLog) *walDamage {
	d := &walDamage{text: FileName + "-wal ends within a page: it was cut", polls: map[int]int{}}
	if l.broken < 0 {
		return d
	}
	d.broken = true
	d.text = fmt.Sprintf("frame %d of %d of %s-wal is damaged, and what was recorded from it on cannot be read",
		l.broken+1, len(l.frames), FileName)
	p := make([]byte, pageSize)
	for _, f := range l.frames {
		if n, err := s.log.ReadAt(p, f.at); n < pageSize && err != nil {
			break
		}
		s.rows(f.page, p, func(values []any, number int64) {
			name, row, _ := identify(values, number)
			switch {
			case row == nil:
			case name == "block":
				id := row[0].(int64)
				d.has(int(id>>32), int(id&maxPoll+row[1].(int64)))
			case name == "tail":
				_ = readTail(row[1].([]byte), func(rec tailRecord) { d.has(rec.target, rec.poll+1) })
			}
		})
	}
	return d
}

func (d *walDamage) has(target, polls int) { d.polls[target] = max(d.polls[target], polls) }
