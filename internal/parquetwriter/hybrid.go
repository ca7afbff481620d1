package parquetwriter

import "encoding/binary"

// run is a value that is repeated. Columns hold runs instead of values, so that
// what is the same for a whole series costs nothing per row.
type run struct {
	bits uint64
	n    int
}

// appendRun appends a value n times, to the last run if it is the same value.
func appendRun(runs []run, bits uint64, n int) []run {
	if i := len(runs) - 1; i >= 0 && runs[i].bits == bits {
		runs[i].n += n
		return runs
	}
	return append(runs, run{bits, n})
}

// appendHybrid appends values below 1<<width in the run-length and bit-packed
// hybrid of Parquet: eight and more of the same as a run, others packed by eight.
func appendHybrid(dst []byte, runs []run, width int) []byte {
	p := packer{dst: dst, width: width, head: -1}
	for _, r := range runs {
		if p.filled > 0 {
			k := min(r.n, 8-p.filled)
			p.pack(r.bits, k)
			r.n -= k
		}
		if r.n >= 8 {
			p.head = -1
			p.dst = binary.AppendUvarint(p.dst, uint64(r.n)<<1)
			for bits := 0; bits < width; bits += 8 {
				p.dst = append(p.dst, byte(r.bits>>bits))
			}
			continue
		}
		p.pack(r.bits, r.n)
	}
	if p.filled > 0 {
		p.pack(0, 8-p.filled) // readers know how many values there are
	}
	return p.dst
}

// packer appends values bit by bit, in groups of eight.
type packer struct {
	dst    []byte
	width  int
	head   int    // where the header of the open run of groups is; -1 for none
	filled int    // values in the open group
	acc    uint64 // bits that do not fill a byte yet
	bits   int
}

// pack appends a value n times, which must fit into the open group.
func (p *packer) pack(v uint64, n int) {
	for range n {
		if p.filled == 0 {
			p.begin()
		}
		p.acc |= v << p.bits
		for p.bits += p.width; p.bits >= 8; p.bits -= 8 {
			p.dst = append(p.dst, byte(p.acc))
			p.acc >>= 8
		}
		p.filled = (p.filled + 1) & 7
	}
}

// begin begins a group, of which a one-byte header can count 63.
func (p *packer) begin() {
	if p.head < 0 || p.dst[p.head] == 63<<1|1 {
		p.head = len(p.dst)
		p.dst = append(p.dst, 1)
	}
	p.dst[p.head] += 2
}
