// Package rundb records a run into one SQLite file, run.db, while it happens, and reads it back.
//
// Writing, with any number of goroutines calling Record:
//
//	w, err := rundb.Create(dir, meta, rundb.WriterOptions{})
//	target, err := w.AddTarget(metric.Target{URL: url})
//	err = w.Record(snapshot) // encodes; the snapshot is the caller's again
//	err = w.Mark(metric.Mark{Name: metric.PhaseProfiling, AtNS: now})
//	err = w.Close()
//
// Reading, also while it is being written, and after the writer was killed:
//
//	r, err := rundb.Open(dir)
//	for s, err := range r.Snapshots(ctx, target) { ... } // valid until the next
//	err = r.Close()
//
// # How it works
//
// Record turns a poll into a few hundred bytes under a lock: what changed, with cumulative buckets as
// increments, so that a bucket that moves only because one below it moved costs nothing. These bytes go to two
// places. They are appended to the open block of their target, in memory; and they are part of the next row of
// the table tail, which one goroutine commits every 100 ms. A block that is long enough is compressed and
// replaces its polls in the tail, in one transaction. So compression works on many polls of one target at a
// time, a target can be read without reading the others, and nothing that was committed is ever only in memory.
//
// Every block starts with a keyframe and is readable by itself: damage costs the
// polls of one block. docs/rundb.md has the schema and the encoding to the byte.
//
// # Limits
//
// Memory of a Writer is about 150 KiB per target of a thousand slots; it does not grow with the length of a
// run. When the disk does not follow, WriterOptions.MaxPending bytes wait and then Record blocks.
package rundb
