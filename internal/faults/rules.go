package faults

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// Evidence is a run directory and what is to be true of it.
type Evidence struct {
	Dir string
	// Formats are the exports that must be there; none of others is wanted or refused.
	Formats []string
	// Secrets must not be in anything that was written.
	Secrets []string
	// Killed reports whether the process that recorded was killed or failed: remains
	// of unfinished files are no fault then, but a broken finished one is.
	Killed bool
}

// Account is what the ledger of one target comes to.
type Account struct {
	URL       string
	Scheduled int
	Outcomes  map[string]int
	Lines     int // of the polls that were stored
	Dropped   int
	GoodLines int // of the polls with the outcome ok
}

// Check returns the violations of rules 1, 2, 3, 4 and 6 by a run directory, each
// as an error that names its rule, joined.
func Check(ctx context.Context, e Evidence) error {
	accounts, err := Accounts(ctx, e.Dir)
	errs := []error{err}
	if err == nil {
		errs = append(errs, e.exports(accounts))
	}
	return errors.Join(append(errs, e.files(), e.secrets(ctx))...)
}

// Accounts adds up the recording in dir, and checks rules 1 and 2 of it on the way: polls are numbered without a hole,
// each has a known outcome which no panic made, and what a stored poll holds and dropped is what its body had.
func Accounts(ctx context.Context, dir string) ([]Account, error) {
	r, err := rundb.Open(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []Account
	var errs []error
	for i, t := range r.Targets() {
		a, err := account(ctx, r, i, t)
		errs = append(errs, err)
		out = append(out, a)
	}
	for _, w := range r.Warnings() {
		if w.Code == "recording_damaged" {
			errs = append(errs, fmt.Errorf("rule 5: %s", w.Text))
		}
	}
	return out, errors.Join(errs...)
}

func account(ctx context.Context, r *rundb.Run, target int, t metric.Target) (Account, error) {
	a := Account{URL: t.URL, Outcomes: map[string]int{}}
	present := 0
	var dict metric.Schema
	var errs []error
	for s, err := range r.Snapshots(ctx, target) {
		if err != nil {
			return a, err
		}
		if s.Seq != uint64(a.Scheduled) {
			errs = append(errs, fmt.Errorf("rule 1: %s: poll %d follows %d polls", t.URL, s.Seq, a.Scheduled))
		}
		if err := dict.Extend(s); err != nil {
			return a, err
		}
		if s.Outcome >= metric.Outcomes {
			errs = append(errs, fmt.Errorf("rule 1: %s: poll %d has no known outcome", t.URL, s.Seq))
		}
		if err := NoPanic(s); err != nil {
			errs = append(errs, fmt.Errorf("rule 1: %s: poll %d: %w", t.URL, s.Seq, err))
		}
		a.Scheduled++
		a.Outcomes[s.Outcome.String()]++
		if !s.Outcome.Stored() {
			continue
		}
		if s.Delta.Full {
			present = Lines(&dict, &s.Delta)
		}
		a.Lines, a.Dropped = a.Lines+s.Lines, a.Dropped+s.Dropped()
		if s.Outcome == metric.OK {
			a.GoodLines += s.Lines
		}
		// Other sources than expositions have no lines of their own.
		if t.Source == "prometheus" && present+s.Dropped() != s.Lines {
			errs = append(errs, fmt.Errorf("rule 2: %s: poll %d: %d samples stored and %d lines dropped of %d", t.URL, s.Seq,
				present, s.Dropped(), s.Lines))
		}
		for _, d := range s.Drops {
			// What the user left out is counted, and needs no example.
			if d.Reason == "" || d.Lines <= 0 || d.First == "" && d.Reason != metric.DropFiltered {
				errs = append(errs, fmt.Errorf("rule 2: %s: poll %d: %d lines dropped with reason %q, the first %q", t.URL, s.Seq,
					d.Lines, d.Reason, d.First))
			}
		}
	}
	return a, errors.Join(errs...)
}

// NoPanic reports whether a poll ended, or lost lines, by a panic that was caught: no target may bring one about.
func NoPanic(s *metric.Snapshot) error {
	if strings.HasPrefix(s.Err, metric.InternalError) {
		return errors.New(s.Err)
	}
	for _, w := range s.Warnings {
		if w.Code == "parser_panic" {
			return errors.New(w.Text)
		}
	}
	return nil
}

// exportedLedger is the part of the JSON export that rules 1 and 2 are about.
type exportedLedger struct {
	Scrapestat struct {
		Endpoints []struct {
			URL       string
			Scheduled int
			Outcomes  map[string]int
			Stored    int
		}
	}
}

// exports checks rule 3, and that the JSON has the ledger of the recording.
func (e Evidence) exports(accounts []Account) error {
	var errs []error
	for _, format := range e.Formats {
		path := filepath.Join(e.Dir, "server_metrics_export."+format)
		data, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("rule 3: %w", err))
			continue
		}
		if format != "json" {
			continue
		}
		var got exportedLedger
		if err := json.Unmarshal(data, &got); err != nil {
			continue // rule 4 tells
		}
		errs = append(errs, sameLedger(path, got, accounts))
	}
	return errors.Join(errs...)
}

func sameLedger(path string, got exportedLedger, accounts []Account) error {
	if n := len(got.Scrapestat.Endpoints); n != len(accounts) {
		return fmt.Errorf("rule 1: %s has %d endpoints, the recording %d", path, n, len(accounts))
	}
	for i, x := range got.Scrapestat.Endpoints {
		sum := 0
		for name, n := range x.Outcomes {
			sum += n
			if accounts[i].Outcomes[name] != n {
				return fmt.Errorf("rule 1: %s: %s: %d polls %s, the recording has %d", path, x.URL, n, name,
					accounts[i].Outcomes[name])
			}
		}
		if x.Scheduled != sum || sum != accounts[i].Scheduled {
			return fmt.Errorf("rule 1: %s: %s: %d scheduled, %d outcomes, %d polls recorded", path, x.URL, x.Scheduled, sum,
				accounts[i].Scheduled)
		}
		if want := accounts[i].Lines - accounts[i].Dropped; x.Stored != want {
			return fmt.Errorf("rule 2: %s: %s: %d lines stored, the recording has %d", path, x.URL, x.Stored, want)
		}
	}
	return nil
}

// files checks rule 4 of every file of the run.
func (e Evidence) files() error {
	var errs []error
	err := filepath.WalkDir(e.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 && d.Type().IsRegular() {
			errs = append(errs, fmt.Errorf("rule 4: %s has mode %v: others can read it", path, info.Mode()))
		}
		if strings.HasSuffix(path, ".tmp") || strings.HasPrefix(d.Name(), ".probe-") {
			if !e.Killed {
				errs = append(errs, fmt.Errorf("rule 4: %s was left behind", path))
			}
			return nil
		}
		if err := whole(path); err != nil {
			errs = append(errs, fmt.Errorf("rule 4: %w", err))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// whole says why a finished file is not complete.
func whole(path string) error {
	var broken error
	switch filepath.Ext(path) {
	case ".json", ".jsonl", ".csv", ".parquet":
	default:
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	switch filepath.Ext(path) {
	case ".json":
		if !json.Valid(data) {
			broken = errors.New("is no JSON")
		}
	case ".jsonl":
		for line := range bytes.Lines(data) {
			if !json.Valid(line) || line[len(line)-1] != '\n' {
				broken = errors.New("has a line that is no JSON")
			}
		}
	case ".csv":
		c := csv.NewReader(bytes.NewReader(data))
		c.FieldsPerRecord = -1
		_, broken = c.ReadAll()
	case ".parquet":
		broken = parquetFrame(data)
	}
	if broken != nil {
		return fmt.Errorf("%s: %w", path, broken)
	}
	return nil
}

// parquetFrame checks the frame of a Parquet file: both marks, and a footer that fits.
func parquetFrame(data []byte) error {
	const mark = "PAR1"
	n := len(data)
	if n < 12 || string(data[:4]) != mark || string(data[n-4:]) != mark {
		return errors.New("is no whole Parquet file")
	}
	if footer := int64(binary.LittleEndian.Uint32(data[n-8:])); footer > int64(n-12) {
		return fmt.Errorf("has a footer of %d bytes in a file of %d", footer, n)
	}
	return nil
}

// secrets checks rule 6: in the bytes of every file, in what is compressed in it,
// and in what a reader of the recording gets.
func (e Evidence) secrets(ctx context.Context) error {
	if len(e.Secrets) == 0 {
		return nil
	}
	var errs []error
	find := func(where string, data []byte) {
		for i, s := range e.Secrets {
			if bytes.Contains(data, []byte(s)) {
				errs = append(errs, fmt.Errorf("rule 6: %s holds secret %d", where, i))
			}
		}
	}
	err := Texts(ctx, e.Dir, find)
	r, openErr := rundb.Open(e.Dir)
	if openErr != nil {
		return errors.Join(append(errs, err, openErr)...)
	}
	defer r.Close()
	for i, t := range r.Targets() {
		find("a target", []byte(fmt.Sprint(t)))
		for s, err := range r.Snapshots(ctx, i) {
			if err != nil {
				return errors.Join(append(errs, err)...)
			}
			find("a poll", []byte(fmt.Sprint(s.Err, s.Warnings, s.Drops)))
		}
	}
	find("a warning", []byte(fmt.Sprint(r.Warnings(), r.Meta())))
	return errors.Join(append(errs, err)...)
}

// Same checks rule 5 of two directories of exports: the files of the names given are equal, byte by byte.
func Same(a, b string, names ...string) error {
	for _, name := range names {
		x, err := os.ReadFile(filepath.Join(a, name))
		if err != nil {
			return fmt.Errorf("rule 5: %w", err)
		}
		y, err := os.ReadFile(filepath.Join(b, name))
		if err != nil {
			return fmt.Errorf("rule 5: %w", err)
		}
		if !bytes.Equal(x, y) {
			return fmt.Errorf("rule 5: %s differs between %s and %s, at byte %d of %d", name, a, b, differ(x, y), len(x))
		}
	}
	return nil
}

func differ(x, y []byte) int {
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return i
		}
	}
	return min(len(x), len(y))
}

// Lines is how many lines of an exposition a full frame has the samples of. The time
// of a sample has a slot, and no line of its own.
func Lines(dict *metric.Schema, f *metric.Delta) (n int) {
	for _, slot := range f.Slots {
		if dict.Slots[slot].Role != metric.RoleSampleTime {
			n++
		}
	}
	return n
}
