package rundb

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/scrapestat/scrapestat/metric"
)

// oldSuffix is the suffix of a family of that type in a recording of before version 6.
func oldSuffix(typ string) string {
	if suffixOf(typ) != "" {
		return metric.SuffixUnknown
	}
	return ""
}

// suffixOf is what names of values of a type may end with that those of its families do not.
func suffixOf(typ string) string {
	return map[string]string{metric.Counter.String(): "_total", metric.Info.String(): "_info"}[typ]
}

// Dict returns all that a target has shown, without reading a block. A suffix that the recording does not tell is
// what the first body has: of a family that it mentions for certain; of guessed others what most counters there of the
// same prefix have, or "_total" where any counter has it or there is no body.
func (r *Run) Dict(ctx context.Context, target int) (d *metric.Schema, guessed int, err error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSection),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, 0, err
	}
	defer z.Close()
	w := &walk{r: r, target: target, z: z}
	var g dictSize
	from, to := key(target, 0), key(target, maxPoll)
	slots := "(SELECT coalesce(sum(slots), 0) FROM slots WHERE id BETWEEN ?1 AND ?2)"
	if r.version < slotsVersion {
		slots = "(SELECT count(*) FROM slot WHERE id BETWEEN ?1 AND ?2)"
	}
	d = &metric.Schema{}
	err = r.db.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM family WHERE id BETWEEN ?1 AND ?2), "+
		"(SELECT count(*) FROM series WHERE id BETWEEN ?1 AND ?2), "+slots, from, to).Scan(&g.families, &g.series, &g.slots)
	if err == nil {
		err = w.grow(ctx, g)
	}
	if err == nil {
		err = d.Grow(&w.growth)
	}
	if err == nil {
		guessed, err = r.nameFamilies(ctx, target, d.Families)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read recording %s: target %d: %w", r.path, target, mendable(err))
	}
	return d, guessed, nil
}

// nameFamilies replaces each unknown suffix and returns how many of them no body tells.
func (r *Run) nameFamilies(ctx context.Context, target int, families []metric.Family) (guessed int, err error) {
	unknown := func(f metric.Family) bool { return f.Suffix == metric.SuffixUnknown }
	if !slices.ContainsFunc(families, unknown) {
		return 0, nil
	}
	body, err := r.firstBody(ctx, target)
	if err != nil {
		return 0, err
	}
	open := bytes.Contains(body, []byte("# EOF")) // in OpenMetrics the name of a family says nothing
	votes := map[string]int{}                     // by prefix: counters with a suffix less those without
	total := len(body) == 0                       // there is one with it
	for i := range families {
		f := &families[i]
		full := suffixOf(f.Type.String())
		switch {
		case !unknown(*f):
		case mentions(body, f.Name+full):
			f.Suffix = full
		case !open && mentions(body, f.Name):
			f.Suffix = ""
		default:
			guessed++
			continue
		}
		if f.Type == metric.Counter {
			votes[prefixOf(f.Name)] += 2*min(len(f.Suffix), 1) - 1
			total = total || f.Suffix != ""
		}
	}
	for i := range families {
		if f := &families[i]; unknown(*f) {
			f.Suffix = suffixOf(f.Type.String())
			vote, ok := votes[prefixOf(f.Name)]
			if f.Type == metric.Counter && (ok && vote <= 0 || !total) {
				f.Suffix = ""
			}
		}
	}
	return guessed, nil
}

// prefixOf is what the families of a program mostly begin with.
func prefixOf(name string) string {
	if i := strings.IndexAny(name, ":_"); i > 0 {
		return name[:i]
	}
	return name
}

// firstBody is the first body that was kept of a target; nil without one, or of one that is damaged.
func (r *Run) firstBody(ctx context.Context, target int) (body []byte, err error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSection))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	err = r.each(ctx, nil, "body", "WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 1",
		[]any{key(target, 0), key(target, maxPoll)}, func(scan func(...any) error) error {
			var id, size int64
			var packed sql.RawBytes
			err := scan(&id, &size, &packed)
			if err == nil {
				if body, err = z.DecodeAll(packed, nil); err != nil {
					err = errors.Join(damageError{err}, err)
				}
			}
			return err
		})
	if isDamage(err) {
		return nil, nil
	}
	return body, err
}

// mentions reports whether a body has a name as a whole word.
func mentions(body []byte, name string) bool {
	part := func(i int) bool {
		if i < 0 || i >= len(body) {
			return false
		}
		c := body[i]
		return c == '_' || c == ':' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	for at := 0; ; {
		n := bytes.Index(body[at:], []byte(name))
		if n < 0 {
			return false
		}
		if at += n; !part(at-1) && !part(at+len(name)) {
			return true
		}
		at += len(name)
	}
}
