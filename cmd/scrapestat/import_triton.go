package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/triton"
)

// tritonImport is what import triton-stats adds to the flags of all kinds.
type tritonImport struct {
	files    []string
	at       []string
	every    time.Duration
	start    string
	fromZero bool
	triton   triton.Flags
}

func newImportTritonCmd(std stdio) *cobra.Command {
	var o importOptions
	var t tritonImport
	cmd := &cobra.Command{
		Use:   "triton-stats FILE|FOLDER...",
		Short: "Import recorded answers of Triton's statistics extension",
		Long: `Imports answers that were saved from GET /v2/models/stats, one per file, as JSON or
as the protobuf message of ModelStatistics (.binpb, .pb). Each is one scrape; a
FOLDER stands for its files. Two are needed for a difference, or one and
--from-zero.

The times are those of --at, one for each FILE in their order; else those of
--start and --every; else a time in the name of the file (seconds, milliseconds,
microseconds or nanoseconds since 1970, or 20261121T100000Z); else when the file
was last written. FILEs are taken in the order of their times.`,
		Example: `  curl -s localhost:8000/v2/models/stats > before.json; run-load; curl -s ` +
			`localhost:8000/v2/models/stats > after.json
  scrapestat import triton-stats before.json after.json -o run1
  scrapestat import triton-stats t0.json t1.json --start 2026-11-21T10:00:00Z --every 10s -o run2`,
		Args: atLeast(1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kind, o.source, o.flags = "triton-stats", strings.Join(args, " "), givenFlags(cmd)
			t.files = args
			if err := o.validate(); err != nil {
				return err
			}
			polls, d, err := t.prepare(&o, time.Now())
			if err != nil {
				return err
			}
			return runImport(cmd.Context(), o, std, func(ctx context.Context, s *importSink) (imported, error) {
				return t.load(ctx, s, d, polls)
			})
		},
	}
	o.register(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&t.at, "at", nil, "`time` of a FILE, once for each")
	f.StringVar(&t.start, "start", "", "`time` of the first FILE; the others follow --every apart")
	f.DurationVar(&t.every, "every", 0, "time between the FILEs")
	f.BoolVar(&t.fromZero, "from-zero", false, "put an empty answer before the first FILE, so that it counts from zero")
	registerOpener(cmd, &t.triton, false)
	return cmd
}

// recorded is a saved answer.
type recorded struct {
	path string
	atNS int64
	zero bool // no file: an answer without models
}

// prepare settles the files and their times.
func (t *tritonImport) prepare(o *importOptions, now time.Time) ([]recorded, *triton.Decoder, error) {
	if err := t.triton.Check(); err != nil {
		return nil, nil, usagef("%w", err)
	}
	keep, drop := o.filters()
	d, err := triton.NewDecoder(triton.Options{Ensembles: t.triton.Ensembles(), Keep: keeper(keep, drop)})
	if err != nil {
		return nil, nil, err
	}
	paths, err := tritonFiles(t.files)
	if err != nil {
		return nil, nil, err
	}
	polls, err := t.times(paths, now)
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(polls, func(a, b recorded) int { return cmp.Compare(a.atNS, b.atNS) })
	if t.fromZero {
		before := cmp.Or(t.every, time.Second)
		polls = slices.Insert(polls, 0, recorded{path: "zero", atNS: polls[0].atNS - int64(before), zero: true})
	}
	for i := range polls[1:] {
		if polls[i].atNS == polls[i+1].atNS {
			return nil, nil, usagef("%s and %s have the same time; give --at for each, or --start and --every", polls[i].path,
				polls[i+1].path)
		}
	}
	return polls, d, nil
}

// tritonFiles lists the files; a folder stands for those in it, sorted.
func tritonFiles(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			return nil, fmt.Errorf("import: %w", err)
		case !info.IsDir():
			out = append(out, arg)
			continue
		}
		entries, err := os.ReadDir(arg)
		if err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
		found := 0
		for _, e := range entries {
			switch filepath.Ext(e.Name()) {
			case ".json", ".binpb", ".pb":
				if e.Type()&fs.ModeDir == 0 {
					out = append(out, filepath.Join(arg, e.Name()))
					found++
				}
			}
		}
		if found == 0 {
			return nil, usagef("folder %s has no .json, .binpb or .pb file", arg)
		}
	}
	return out, nil
}

// times gives each file its time.
func (t *tritonImport) times(paths []string, now time.Time) ([]recorded, error) {
	polls := make([]recorded, len(paths))
	if len(t.at) > 0 && len(t.at) != len(paths) {
		return nil, usagef("--at is given %d times for %d files", len(t.at), len(paths))
	}
	if (t.start != "") != (t.every != 0) || t.every < 0 {
		return nil, usagef("--start and --every go together, and --every is positive")
	}
	for i, path := range paths {
		polls[i].path = path
		text := t.start
		if len(t.at) > 0 {
			text = t.at[i]
		}
		if text != "" {
			at, err := parseInstant(text, now)
			if err != nil {
				return nil, usagef("--at or --start: %w", err)
			}
			polls[i].atNS = at.UnixNano()
			if len(t.at) == 0 {
				polls[i].atNS += int64(i) * int64(t.every)
			}
			continue
		}
		var ok bool
		if polls[i].atNS, ok = timeInName(filepath.Base(path)); ok {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
		polls[i].atNS = info.ModTime().UnixNano()
	}
	return polls, nil
}

var (
	stampInName = regexp.MustCompile(`\d{8}T\d{6}Z`)
	epochInName = regexp.MustCompile(`(?:^|\D)(\d{10}|\d{13}|\d{16}|\d{19})(?:\D|$)`)
)

// timeInName finds a time in the name of a file.
func timeInName(name string) (int64, bool) {
	if text := stampInName.FindString(name); text != "" {
		if at, err := time.Parse("20060102T150405Z", text); err == nil {
			return at.UnixNano(), true
		}
	}
	m := epochInName.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	ns, err := strconv.ParseInt((m[1] + "000000000")[:19], 10, 64)
	return ns, err == nil && ns > 0
}

// load decodes and records the files.
func (t *tritonImport) load(ctx context.Context, s *importSink, d *triton.Decoder, polls []recorded) (imported, error) {
	got := imported{targets: 1, firstNS: polls[0].atNS, lastNS: polls[len(polls)-1].atNS}
	if err := s.Begin(got.firstNS); err != nil {
		return imported{}, err
	}
	if _, err := s.AddTarget(metric.Target{URL: fileTarget(t.files[0]), Source: "triton"}); err != nil {
		return imported{}, err
	}
	for i, p := range polls {
		if ctx.Err() != nil {
			return got, fmt.Errorf("import %s: %w", p.path, ctx.Err())
		}
		snap := metric.Snapshot{Seq: uint64(i), DueNS: p.atNS, SentNS: p.atNS, FirstByteNS: p.atNS}
		if err := decodeRecorded(d, p, &snap); err != nil {
			return got, err
		}
		if err := s.Record(&snap); err != nil {
			return got, err
		}
		got.polls++
		got.lost += int64(snap.Lost())
		if !snap.Outcome.Stored() {
			got.failed++
			got.notes = append(got.notes, metric.Warning{Code: "import_failed", Text: fmt.Sprintf("%s is no usable answer: %s",
				filepath.Base(p.path), snap.Err)})
			continue
		}
		got.stored += int64(snap.Lines - snap.Dropped())
	}
	if got.failed == got.polls {
		return imported{}, nil // nothing was found
	}
	if got.polls-got.failed < 2 {
		got.notes = append(got.notes, metric.Warning{Code: "single_snapshot",
			Text: "one answer has no difference to another: give two, or --from-zero"})
	}
	return got, nil
}

// maxRecorded bounds the size of a file.
const maxRecorded = 64 << 20

// decodeRecorded decodes one file into a poll.
func decodeRecorded(d *triton.Decoder, p recorded, s *metric.Snapshot) error {
	if p.zero {
		d.JSON([]byte(`{"model_stats":[]}`), s)
		return nil
	}
	r, closeFile, err := openInput(p.path, stdio{})
	if err != nil {
		return err
	}
	defer closeFile()
	body, err := io.ReadAll(io.LimitReader(r, maxRecorded+1))
	if err != nil {
		return fmt.Errorf("import %s: %w", p.path, err)
	}
	if len(body) > maxRecorded {
		return fmt.Errorf("import %s: file is longer than %d bytes", p.path, maxRecorded)
	}
	if ext := filepath.Ext(strings.TrimSuffix(p.path, ".gz")); ext == ".binpb" || ext == ".pb" {
		d.Protobuf(body, s)
	} else {
		d.JSON(body, s)
	}
	return nil
}
