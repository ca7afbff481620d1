package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/scrapestat/scrapestat/metric"
)

// tsdbResult is the cost of a sample in the embedded Prometheus TSDB.
type tsdbResult struct{ ns, wal, block float64 }

// tsdb appends the same samples, of all targets of the material once each, as a
// Prometheus scrape does: one transaction for each poll.
func (m *material) tsdb(ctx context.Context, dir string) (t tsdbResult, err error) {
	o := tsdb.DefaultOptions()
	db, err := tsdb.Open(dir, nil, nil, o, nil)
	if err != nil {
		return t, fmt.Errorf("open TSDB: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.DisableCompactions()
	start := processorTime()
	writers := make([]tsdbTarget, len(m.of))
	for i := range storePolls {
		for k := range m.of {
			if err := writers[k].append(ctx, db, k, m.of[k].snapshots[i]); err != nil {
				return t, err
			}
		}
	}
	t.ns = float64(processorTime()-start) / float64(m.samples)
	wal, err := sizeOf(filepath.Join(dir, "wal"))
	if err != nil {
		return t, err
	}
	t.wal = float64(wal) / float64(m.samples)
	head := db.Head()
	if err := db.CompactHead(tsdb.NewRangeHead(head, head.MinTime(), head.MaxTime())); err != nil {
		return t, fmt.Errorf("compact head: %w", err)
	}
	t.block, err = blockBytes(dir)
	t.block /= float64(m.samples)
	return t, err
}

// tsdbTarget writes the polls of one target.
type tsdbTarget struct {
	metric.Replay
	labels []labels.Labels
	refs   []storage.SeriesRef
}

func (w *tsdbTarget) append(ctx context.Context, db *tsdb.DB, target int, s *metric.Snapshot) error {
	if err := w.Step(s); err != nil {
		return err
	}
	for slot := len(w.labels); slot < len(w.Slots); slot++ {
		w.labels = append(w.labels, w.slotLabels(target, slot))
		w.refs = append(w.refs, 0)
	}
	a := db.Appender(ctx)
	for slot, shown := range w.Present {
		if !shown {
			continue
		}
		ref, err := a.Append(w.refs[slot], w.labels[slot], millis(s.AtNS()), w.Slots[slot].Float(w.Bits[slot]))
		if err != nil {
			return fmt.Errorf("append to TSDB: %w", err)
		}
		w.refs[slot] = ref
	}
	if err := a.Commit(); err != nil {
		return fmt.Errorf("commit to TSDB: %w", err)
	}
	return nil
}

// slotLabels is the series as Prometheus names it.
func (w *tsdbTarget) slotLabels(target, slot int) labels.Labels {
	s := w.Slots[slot]
	f := w.FamilyOf(s.Series)
	b := labels.NewBuilder(labels.EmptyLabels())
	suffix := map[metric.Role]string{metric.RoleSum: "_sum", metric.RoleCount: "_count", metric.RoleBucket: "_bucket", metric.RoleCreated: "_created"}[s.Role]
	if f.Type == metric.Counter && s.Role == metric.RoleValue {
		suffix = "_total"
	}
	b.Set("__name__", f.Name+suffix)
	b.Set("instance", fmt.Sprintf("127.0.0.1:%d", 8000+target))
	b.Set("job", "bench")
	for name, value := range w.Series[s.Series].Labels.All() {
		b.Set(name, value)
	}
	switch s.Role {
	case metric.RoleBucket:
		b.Set("le", s.Text)
	case metric.RoleQuantile:
		b.Set("quantile", s.Text)
	}
	return b.Labels()
}

// blockBytes is the size of the blocks in dir.
func blockBytes(dir string) (float64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var n int64
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), "wal") || e.Name() == "chunks_head" {
			continue
		}
		size, err := sizeOf(filepath.Join(dir, e.Name()))
		if err != nil {
			return 0, err
		}
		n += size
	}
	if n == 0 {
		return 0, errors.New("compaction made no block")
	}
	return float64(n), nil
}
