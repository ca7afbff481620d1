package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/source/otlp"
	"github.com/scrapestat/scrapestat/source/reqfile"
)

// serverKind is a kind of files in which servers tell of their requests.
type serverKind struct {
	name string
	metric.ServerClock
	open func(record func(*metric.ServerRequest)) serverReader
}

// serverReader reads files of one kind and remembers what was in those before.
type serverReader interface {
	Read(ctx context.Context, in io.Reader) error
	Counts() metric.ServerCounts
	Warning() string
}

// serverKinds are all kinds of such files.
func serverKinds() []serverKind {
	all := []serverKind{{"otlp-json", otlp.Clock(), func(record func(*metric.ServerRequest)) serverReader {
		return otlp.NewDecoder(record)
	}}}
	for _, k := range reqfile.Kinds() {
		all = append(all, serverKind{k.Name, k.ServerClock, func(record func(*metric.ServerRequest)) serverReader {
			return reqfile.NewReader(k, record)
		}})
	}
	return all
}

func serverKindOf(name string) (serverKind, bool) {
	all := serverKinds()
	i := slices.IndexFunc(all, func(k serverKind) bool { return k.name == name })
	if i < 0 {
		return serverKind{}, false
	}
	return all[i], true
}

func serverKindNames() (names []string) {
	for _, k := range serverKinds() {
		names = append(names, k.name)
	}
	return names
}

// serverImport writes records of files into a run.
type serverImport struct {
	*requestsImport
	serverKind
	w       *rundb.EventWriter
	reader  serverReader
	source  metric.ServerSource // that is being read
	batch   []metric.ServerRequest
	failed  error
	total   metric.ServerCounts
	badFile string
	firstNS int64
	lastNS  int64
}

// runServer adds what servers tell in files to a run, or makes a run of it.
func (o *requestsImport) runServer(ctx context.Context, kind serverKind, paths []string, std stdio) error {
	defer limitGC(o.memory.bytes)()
	created, unlock, err := o.prepare()
	if err != nil {
		return err
	}
	defer unlock()
	meta, manifest := describeRun(time.Now().UnixNano(), nil, []string{"scrapestat", "requests", "import"}, o.flags, paths)
	s := &serverImport{requestsImport: o, serverKind: kind, firstNS: math.MaxInt64}
	s.reader = kind.open(func(q *metric.ServerRequest) { s.record(ctx, q) })
	if s.w, err = rundb.OpenEvents(ctx, o.out, rundb.EventWriterOptions{Source: "import " + kind.name,
		Create: &meta}); err != nil {
		return err
	}
	for _, path := range paths {
		if err == nil {
			err = s.file(ctx, path, std)
		}
	}
	if err == nil && s.total.Records == 0 {
		err = &codeError{exitNothing, fmt.Errorf("nothing to import: no record of a request was found%s", s.firstBad())}
	}
	if err == nil && o.replace == "server" {
		err = s.w.DropEarlier(ctx, false, true)
	}
	if err != nil { // half of the files is worse than none
		err = fmt.Errorf("import requests: %w", errors.Join(err, s.w.Discard(context.WithoutCancel(ctx))))
		if created {
			err = errors.Join(err, os.RemoveAll(o.out))
		}
		return err
	}
	if err := s.w.Close(ctx); err != nil {
		return err
	}
	if created {
		manifest.Started, manifest.Options = time.Time{}, map[string]any{"requests import": kind.name}
		if kind.Clock == metric.ServerUnix && s.lastNS > 0 {
			manifest.Started, manifest.Ended = time.Unix(0, s.firstNS).UTC(), time.Unix(0, s.lastNS).UTC()
		}
		if err := rundb.WriteManifest(o.out, manifest); err != nil {
			return err
		}
	}
	return s.verdict(std)
}

// file reads one file.
func (s *serverImport) file(ctx context.Context, path string, std stdio) error {
	in, closeInput, err := openInput(path, std)
	if err != nil {
		return err
	}
	defer closeInput()
	before := s.reader.Counts()
	s.source = metric.ServerSource{Kind: s.name, Name: metric.Clean(path, 1024), ServerClock: s.ServerClock,
		OpenedNS: time.Now().UnixNano()}
	if s.Clock == metric.ServerMonotonic {
		s.source.BootID = s.sameBoot
	}
	if s.source.ID, err = s.w.AddSource(ctx, s.source); err != nil {
		return err
	}
	err = s.reader.Read(ctx, in)
	s.flush(ctx)
	if err = errors.Join(err, s.failed); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s.total = s.reader.Counts()
	if s.total.Bad > 0 && before.Bad == 0 {
		s.badFile = path
	}
	c := &s.source.ServerCounts
	*c = s.total
	c.Records, c.Bad, c.Other = c.Records-before.Records, c.Bad-before.Bad, c.Other-before.Other
	return s.w.WriteServer(ctx, nil, []metric.ServerSource{s.source})
}

// record takes a record of the file that is being read.
func (s *serverImport) record(ctx context.Context, q *metric.ServerRequest) {
	s.batch = append(s.batch, *q)
	s.batch[len(s.batch)-1].Source = s.source.ID
	if q.ArrivalNS != 0 {
		s.firstNS, s.lastNS = min(s.firstNS, q.ArrivalNS), max(s.lastNS, q.ArrivalNS, q.FinishNS)
	}
	if len(s.batch) >= 1000 {
		s.flush(ctx)
	}
}

func (s *serverImport) flush(ctx context.Context) {
	if s.failed == nil {
		s.failed = s.w.WriteServer(ctx, s.batch, nil)
	}
	s.batch = s.batch[:0]
}

func (s *serverImport) firstBad() string {
	if s.total.Bad == 0 {
		return ""
	}
	return fmt.Sprintf(": %d entries could not be read, the first in %s: %s", s.total.Bad, texttab.Escape(s.badFile),
		texttab.Escape(s.total.FirstBad))
}

// verdict tells what was imported.
func (s *serverImport) verdict(std stdio) error {
	t := &s.total
	when := "with durations alone"
	switch {
	case s.lastNS == 0:
	case s.Clock == metric.ServerUnix:
		when = fmt.Sprintf("%s to %s", time.Unix(0, s.firstNS).UTC().Format(time.RFC3339),
			time.Unix(0, s.lastNS).UTC().Format(time.RFC3339))
	default:
		when = "on a monotonic clock"
	}
	fmt.Fprintf(std.err, "imported %d records of servers (%s), %s, into %s\n", t.Records, s.name, when, s.out)
	if t.Other > 0 {
		fmt.Fprintf(std.err, "%d other entries are not about requests\n", t.Other)
	}
	if t.Seen > 0 {
		fmt.Fprintf(std.err, "%d records were there twice and are counted once\n", t.Seen)
	}
	if t.Bad > 0 {
		fmt.Fprintf(std.err, "warning%s\n", s.firstBad())
	}
	if text := s.reader.Warning(); text != "" {
		fmt.Fprintf(std.err, "warning: %s\n", text)
	}
	if err := s.lost(t.Bad, "%d entries were left out", t.Bad); err != nil {
		return err
	}
	fmt.Fprintf(std.err, "next: scrapestat requests join %s\n", s.out)
	return nil
}
