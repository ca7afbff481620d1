package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/events"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// requestsImport is the command line of requests import.
type requestsImport struct {
	kind, path, out  string
	anchor, sameBoot string
	alignFirst       bool
	lenient          bool
	replace          string // a side: client or server
	runFlags
	maxLine     int
	maxSize     int64
	maxRequests int
	flags       []string
	made        rundb.Manifest // by store
}

func newRequestsImportCmd(std stdio) *cobra.Command {
	var o requestsImport
	cmd := &cobra.Command{
		Use:   "import [KIND] FILE... -o RUN",
		Short: "Add the requests that another tool or the server recorded to a run",
		Long: `Adds the requests that another tool recorded to a run, or makes a run of them. KIND
is ` + strings.Join(events.Kinds, ", ") + `,
or auto (default): the content decides. FILE may be gzip unless it is a database;
- is stdin.

What servers tell of their requests are files of KIND ` + strings.Join(serverKindNames(), ",\n") + `,
of which several may be given. Prompts in them are not read.

MLPerf's and vLLM's times are those of a monotonic clock, which says nothing about
when the run was. --anchor, --same-boot or --align-first-scrape place them on the
time axis of the server metrics. Without one, reports work and joining with server
metrics does not.

Lines and entries that cannot be read are counted and left out. The exit code is
5 when nothing was found, and 4 under --strict when something was left out.`,
		Example: "  scrapestat requests import profile_export.jsonl -o run1\n  scrapestat requests import events.db -o " +
			"run1 --anchor 2026-11-21T10:00:00Z\n  scrapestat requests import vllm-bench result.json -o run1 " +
			"--align-first-scrape",
		Args: importArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.flags = givenFlags(cmd)
			kind, ofServer := serverKindOf(args[0])
			if ofServer && len(args) > 1 {
				o.kind = kind.name
				if err := o.validate(); err != nil {
					return err
				}
				return o.runServer(cmd.Context(), kind, args[1:], std)
			}
			o.kind, o.path = "auto", args[len(args)-1]
			if len(args) == 2 {
				o.kind = args[0]
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context(), std)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.out, "out", "o", "", "run `directory`: one without requests, or a new one (required)")
	f.StringVar(&o.anchor, "anchor", "", "`time` of the first event of the file (RFC 3339 or seconds since 1970)")
	f.StringVar(&o.sameBoot, "same-boot", "",
		"the times are of CLOCK_MONOTONIC of this machine since it booted; `boot_id` is what "+
			"/proc/sys/kernel/random/boot_id said when the file was recorded, or \"run\": that of the run")
	f.BoolVar(&o.alignFirst, "align-first-scrape", false, "the first event of the file was at the first scrape of the run")
	f.StringVar(&o.replace, "replace", "", "drop what the run has of a `side`, client or server, once FILE is "+
		"imported")
	f.BoolVar(&o.lenient, "lenient", false, "let a session pass that started or ended twice, or went on after its end")
	o.runFlags.register(cmd)
	f.IntVar(&o.maxLine, "max-line", 64<<20, "longest line in `bytes`; a longer one is left out")
	f.Int64Var(&o.maxSize, "max-size", 2<<30, "largest JSON document in `bytes`")
	f.IntVar(&o.maxRequests, "max-requests", 5_000_000, "most requests held in memory, about 800 bytes each")
	return cmd
}

// importArgs wants one file, or several of a kind that servers write.
func importArgs(_ *cobra.Command, args []string) error {
	if len(args) > 2 {
		if _, ok := serverKindOf(args[0]); ok {
			return nil
		}
	}
	if len(args) != 1 && len(args) != 2 {
		return usagef("want [KIND] FILE, got %d arguments", len(args))
	}
	return nil
}

func (o *requestsImport) validate() error {
	given := 0
	for _, is := range []bool{o.anchor != "", o.sameBoot != "", o.alignFirst} {
		if is {
			given++
		}
	}
	switch {
	case o.out == "":
		return usagef("missing -o RUN, the run directory that gets the requests")
	case given > 1:
		return usagef("--anchor, --same-boot and --align-first-scrape exclude each other")
	case o.replace != "" && o.replace != "client" && o.replace != "server":
		return usagef("--replace %q: want client or server", o.replace)
	case !slices.Contains(slices.Concat([]string{"auto", events.KindSummary}, serverKindNames(), events.Kinds), o.kind):
		return usagef("unknown kind %q (known: auto, %s)", o.kind,
			strings.Join(slices.Concat(serverKindNames(), events.Kinds), ", "))
	case o.maxLine < 1 || o.maxSize < 1 || o.maxRequests < 1:
		return usagef("--max-line %d, --max-size %d, --max-requests %d: a limit must be positive", o.maxLine, o.maxSize,
			o.maxRequests)
	}
	return o.memory.validate()
}

// place finds the anchor that the flags ask for.
func (o *requestsImport) place(ctx context.Context) (events.Anchor, error) {
	switch {
	case o.anchor != "":
		at, err := parseInstant(o.anchor, time.Now())
		if err != nil {
			return events.Anchor{}, usagef("--anchor: %w", err)
		}
		return events.Anchor{Source: "anchor", FirstNS: at.UnixNano()}, nil
	case o.sameBoot == "run":
		return bootOfRun(o.out)
	case o.sameBoot != "":
		c, err := rundb.ReadHostClock()
		if err != nil {
			return events.Anchor{}, fmt.Errorf("--same-boot: %w: use --anchor", err)
		}
		if c.BootID != o.sameBoot {
			return events.Anchor{}, fmt.Errorf("--same-boot: this machine's boot is %s, the file's is %s: use --anchor",
				c.BootID,
				o.sameBoot)
		}
		return events.Anchor{Source: "same-boot", OffsetNS: c.UnixNS - c.MonoNS}, nil
	case o.alignFirst:
		at, err := firstScrape(ctx, o.out)
		return events.Anchor{Source: "align-first-scrape", FirstNS: at}, err
	}
	return events.Anchor{}, nil
}

// bootOfRun places times of the boot that the run was recorded in.
func bootOfRun(dir string) (events.Anchor, error) {
	run, err := rundb.Open(dir)
	if err != nil {
		return events.Anchor{}, fmt.Errorf("--same-boot run: %w", err)
	}
	m := run.Meta()
	if err := run.Close(); err != nil {
		return events.Anchor{}, err
	}
	if m.BootID == "" {
		return events.Anchor{}, fmt.Errorf("--same-boot run: %s does not tell which boot it was recorded in: use --anchor, "+
			"or --same-boot BOOT_ID", dir)
	}
	return events.Anchor{Source: "same-boot", OffsetNS: m.OriginNS - m.BootNS}, nil
}

// firstScrape is the time of the earliest stored poll of a run.
func firstScrape(ctx context.Context, dir string) (first int64, err error) {
	run, err := rundb.Open(dir)
	if err != nil {
		return 0, fmt.Errorf("--align-first-scrape: %w", err)
	}
	for i := range run.Targets() {
		for p, err := range run.Snapshots(ctx, i) {
			if err != nil {
				return 0, errors.Join(fmt.Errorf("--align-first-scrape: %w", err), run.Close())
			}
			if p.Outcome.Stored() {
				if at := p.AtNS(); first == 0 || at < first {
					first = at
				}
				break
			}
		}
	}
	if err := run.Close(); err != nil {
		return 0, err
	}
	if first == 0 {
		return 0, fmt.Errorf("--align-first-scrape: %s has no scrape", dir)
	}
	return first, nil
}

// prepare makes the directory of a new run. Of an existing one it refuses what has
// requests already: two sessions in one run are a mistake.
func (o *requestsImport) prepare() (created bool, unlock func(), err error) {
	_, err = os.Stat(filepath.Join(o.out, rundb.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		unlock, err = makeRunDir(o.out, false)
		return true, unlock, err
	}
	run, err := rundb.Open(o.out)
	if err != nil {
		return false, nil, err
	}
	_, server := serverKindOf(o.kind)
	switch {
	case server && run.HasServerRequests() && o.replace != "server":
		err = usagef("%s has records of servers already: --replace server drops them, or choose another run with -o", o.out)
	case !server && run.HasEvents() && o.replace != "client":
		err = usagef("%s has request events already: --replace client drops them, or choose another run with -o", o.out)
	}
	return false, func() {}, errors.Join(err, run.Close())
}

func (o *requestsImport) run(ctx context.Context, std stdio) error {
	defer limitGC(o.memory.bytes)()
	anchor, err := o.place(ctx)
	if err != nil {
		return err
	}
	f, closeFile, err := openEvents(o.path, std, events.FileOptions{Kind: o.kind, Anchor: anchor, MaxLine: o.maxLine,
		MaxSize: o.maxSize, MaxRequests: o.maxRequests})
	if err != nil {
		return err
	}
	defer closeFile()
	if f.Kind == events.KindSummary {
		return fmt.Errorf("import requests: %s: %w", o.path, events.ErrSummary)
	}
	created, unlock, err := o.prepare()
	if err != nil {
		return err
	}
	defer unlock()
	s, err := o.store(ctx, f)
	if err != nil {
		if created { // a run that holds nothing, or half of a file, is no run
			err = errors.Join(err, os.RemoveAll(o.out))
		}
		return err
	}
	if created {
		if err := o.manifest(f); err != nil {
			return err
		}
	}
	return o.verdict(f, s, std)
}

// store writes the events into the run and makes its table of requests. The file
// is checked as a session while it is read, so a faulty one stops here.
func (o *requestsImport) store(ctx context.Context, f *events.File) (s *events.Session, err error) {
	meta, manifest := describeRun(time.Now().UnixNano(), nil, []string{"scrapestat", "requests", "import"}, o.flags,
		[]string{o.path})
	o.made = manifest
	w, err := rundb.OpenEvents(ctx, o.out, rundb.EventWriterOptions{Source: "import " + f.Kind, Create: &meta})
	if err != nil {
		return nil, err
	}
	stats := rundb.EventStats{}
	batch := make([]metric.Event, 0, 1000)
	flush := func() error {
		stats.Recorded += int64(len(batch))
		stats.EncodeErrors, stats.MaxQueue = f.Bad, int64(cap(batch))
		err := w.Write(ctx, batch, stats)
		batch = batch[:0]
		return err
	}
	stream := func(yield func(*metric.Event, error) bool) {
		for ev, err := range f.Stream(ctx) {
			if err == nil {
				c := *ev
				c.Data = slices.Clone(ev.Data)
				if batch = append(batch, c); len(batch) == cap(batch) {
					err = flush()
				}
			}
			if !yield(ev, err) {
				return
			}
		}
	}
	s, err = events.Assemble(stream, events.Rules{Lenient: o.lenient, MaxRequests: o.maxRequests,
		Memory: o.memory.of})
	if err == nil {
		err = flush()
	}
	if err == nil && f.Clock != events.ClockMonotonic && f.Events > 0 {
		err = w.Anchor(ctx, clockOf(f))
	}
	if err == nil && f.Events == 0 {
		err = &codeError{exitNothing, fmt.Errorf("nothing to import in %s: no event was found", o.path)}
	}
	if err == nil && o.replace == "client" {
		err = w.DropEarlier(ctx, true, false)
	}
	if err != nil { // a run that holds half of a file is worse than one without
		err = errors.Join(err, w.Discard(context.WithoutCancel(ctx)))
	} else {
		err = w.Close(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("import requests: %w", err)
	}
	return s, s.Store(ctx, o.out)
}

// clockOf is the row of table clock: what tells join that times are Unix time.
func clockOf(f *events.File) rundb.Clock {
	source := "import " + f.Kind
	if f.Clock == events.ClockAnchored {
		source += " by " + f.Anchor.Source
	}
	return rundb.Clock{Source: source, MonoNS: f.FirstNS - f.Anchor.OffsetNS, UnixNS: f.FirstNS}
}

// manifest is that of a run of the file alone.
func (o *requestsImport) manifest(f *events.File) error {
	m := o.made
	m.Started, m.Options = time.Time{}, map[string]any{"requests import": f.Kind}
	if f.Clock != events.ClockMonotonic {
		m.Started, m.Ended = time.Unix(0, f.FirstNS).UTC(), time.Unix(0, f.LastNS).UTC()
	}
	return rundb.WriteManifest(o.out, m)
}

// verdict tells what was imported.
func (o *requestsImport) verdict(f *events.File, s *events.Session, std stdio) error {
	when := "on a monotonic clock"
	if f.Clock != events.ClockMonotonic {
		when = fmt.Sprintf("%s to %s", time.Unix(0, f.FirstNS).UTC().Format(time.RFC3339),
			time.Unix(0, f.LastNS).UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(std.err, "imported %d events of %d requests (%s), %s, into %s\n", f.Events, len(s.Requests), f.Kind, when,
		o.out)
	lost := f.Bad + s.Lost()
	if f.Bad > 0 {
		fmt.Fprintf(std.err, "warning: %d entries could not be read, the first: %s\n", f.Bad, texttab.Escape(f.FirstBad))
	}
	for _, c := range []events.Count{{Name: "fit no request in flight", N: s.Orphans},
		{Name: "are of an unknown type", N: s.Unknown},
		{Name: "have data that could not be read", N: s.BadData}} {
		if c.N > 0 {
			fmt.Fprintf(std.err, "warning: %d events %s\n", c.N, c.Name)
		}
	}
	for _, x := range s.Warnings {
		fmt.Fprintf(std.err, "warning: %s\n", x.Text)
	}
	switch {
	case f.Clock == events.ClockMonotonic:
		fmt.Fprintln(std.err, "warning: nothing says when this was: without --anchor, --same-boot or "+
			"--align-first-scrape the requests cannot be joined with server metrics: import them again with one, and "+
			"--replace client")
	case f.Anchor.Source == "same-boot" && f.LastNS > time.Now().Add(time.Minute).UnixNano():
		fmt.Fprintln(std.err, "warning: the last event is in the future: these times are not of this boot")
	}
	if err := o.lost(lost, "%d entries or events were left out", lost); err != nil {
		return err
	}
	fmt.Fprintf(std.err, "next: scrapestat requests report %s\n", o.out)
	return o.hint(f, std)
}

// idleShare is how much of a run may be without requests before that is told.
const idleShare = 0.1

// hint says which part of the run had the requests: a load generator that was the
// command of collect also starts and ends, and rates are of all that time.
func (o *requestsImport) hint(f *events.File, std stdio) error {
	if f.Clock == events.ClockMonotonic {
		return nil
	}
	run, err := rundb.Open(o.out)
	if err != nil {
		return err
	}
	var start, end int64
	for _, m := range run.Marks() {
		switch m.Name {
		case metric.PhaseWarmup, metric.PhaseProfiling:
			if start == 0 || m.AtNS < start {
				start = m.AtNS
			}
		case metric.MarkEnd:
			end = m.AtNS
		}
	}
	interval := run.Meta().Interval
	if err := run.Close(); err != nil {
		return err
	}
	// The last observations show in the poll after the last request.
	from := time.Duration(f.FirstNS - start).Truncate(10 * time.Millisecond)
	to := (time.Duration(f.LastNS-start) + interval).Truncate(10*time.Millisecond) + 10*time.Millisecond
	whole := time.Duration(end - start)
	if start == 0 || from < 0 || to > whole || float64(whole-(to-from)) < idleShare*float64(whole) {
		return nil
	}
	fmt.Fprintf(std.err,
		"the requests fill %v of the run's %v; of that part alone: scrapestat show %s --from %v --to %v\n",
		(to - from).Round(time.Second), whole.Round(time.Second), o.out, from, to)
	return nil
}
