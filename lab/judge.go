//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// verdict is a row that was judged.
type verdict struct {
	row
	ours   float64
	status string // what scrapestat says of the number beside ok; or what is wrong
}

func (v verdict) difference() float64 {
	if v.ours == v.Value {
		return 0
	}
	return (v.ours - v.Value) / math.Abs(v.Value)
}

func (v verdict) right() bool { return v.status == "" && math.Abs(v.difference()) <= v.Within }

func (v verdict) cells() []string {
	word := "right"
	if !v.right() {
		word = strings.TrimSpace("WRONG " + v.status)
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', 7, 64) }
	return []string{v.Ask, number(v.Value), number(v.ours), fmt.Sprintf("%.2g %%", 100*v.difference()),
		fmt.Sprintf("%g %%", 100*v.Within), word}
}

// scenario runs one and returns its rows, judged.
func (l *lab) scenario(ctx context.Context, s *scenario) (out []verdict, err error) {
	dir := filepath.Join(l.work, l.recipe.name+"-"+s.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	recording := filepath.Join(dir, "run")
	all := l.recipe.start(l, s)
	if err := serve(ctx, dir, all, func() error { return l.collect(ctx, s, dir, recording, all) }); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	if err != nil {
		return nil, err
	}
	truth := map[string]float64{}
	if err := json.Unmarshal(text, &truth); err != nil {
		return nil, err
	}
	for _, r := range s.rows {
		value, known := truth[r.Truth]
		if r.Value = value; !known {
			return nil, fmt.Errorf("the client counts no %q: %v", r.Truth, truth)
		}
		v, err := l.ask(ctx, recording, r)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	if l.update {
		if err := l.keep(s, recording, out); err != nil {
			return nil, err
		}
	}
	unknown, err := l.unknown(ctx, recording)
	return append(out, unknown), err
}

// collect records the load of a scenario as a user does.
func (l *lab) collect(ctx context.Context, s *scenario, dir, recording string, all []*process) error {
	args := []string{"collect", "-o", recording, "--quiet"}
	for _, p := range all {
		if p.metrics == "" {
			continue
		}
		from := p.metrics
		if l.update {
			server, url, err := relay(from)
			if err != nil {
				return err
			}
			defer server.Close()
			from = url
		}
		args = append(args, p.name+"="+from)
	}
	base, _, _ := strings.Cut(strings.TrimPrefix(all[0].ready, "http://"), "/")
	args = append(args, "--", l.self, "load", l.recipe.name, s.name, "http://"+base, dir)
	return l.do(ctx, l.recipe.name+"-"+s.name+".log", l.scrapestat, args...)
}

// output runs scrapestat and returns what it prints on stdout and its exit code.
func (l *lab) output(ctx context.Context, args ...string) (text []byte, code int, err error) {
	text, err = exec.CommandContext(ctx, l.scrapestat, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if exit.ExitCode() == 1 || exit.ExitCode() == 2 {
			return nil, exit.ExitCode(), fmt.Errorf("scrapestat %v: %w\n%s", args, err, exit.Stderr)
		}
		return text, exit.ExitCode(), nil
	}
	return text, 0, err
}

// ask reads a quantity as a user's gate does, the sum over all series that it is asked of.
func (l *lab) ask(ctx context.Context, recording string, r row) (verdict, error) {
	v := verdict{row: r}
	text, _, err := l.output(ctx, "check", recording, "--format", "json", "--assert",
		fmt.Sprintf("%s == %v", r.Ask, strconv.FormatFloat(r.Value, 'f', -1, 64)))
	if err != nil {
		return v, err
	}
	var got struct {
		Schema  string
		Version int `json:"schema_version"`
		Checks  []struct {
			Outcomes []struct {
				Verdict string
				Reason  string
				Value   *float64
			}
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return v, fmt.Errorf("read answer of check: %w", err)
	}
	if got.Schema != "scrapestat.check" || got.Version != 2 || len(got.Checks) != 1 {
		return v, fmt.Errorf("check answers with %s %d and %d checks, want scrapestat.check 2 and one", got.Schema,
			got.Version, len(got.Checks))
	}
	outcomes := got.Checks[0].Outcomes
	for _, o := range outcomes {
		if o.Value == nil {
			v.status = o.Verdict + " " + o.Reason
			continue
		}
		v.ours += *o.Value
	}
	if len(outcomes) == 0 {
		v.status = "no number"
	}
	return v, nil
}

// unknown counts the families of the recording that no pack knows and the recipe does not accept.
func (l *lab) unknown(ctx context.Context, recording string) (verdict, error) {
	v := verdict{row: row{Ask: "unknown families"}}
	text, _, err := l.output(ctx, "catalog", "unknown", recording)
	if err != nil {
		return v, err
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		name := strings.TrimSpace(line)
		if l.recipe.accepted[name] == "" {
			names = append(names, name)
		}
	}
	if v.ours = float64(len(names)); len(names) > 0 {
		v.status = strings.Join(names, " ")
	}
	return v, nil
}

// keep writes the recording and what it must show into testdata/runs.
func (l *lab) keep(s *scenario, recording string, rows []verdict) error {
	dir := filepath.Join(l.root, "testdata", "runs", l.recipe.name+"-"+s.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	db, err := os.ReadFile(filepath.Join(recording, "run.db"))
	if err != nil {
		return err
	}
	if len(db) > 1<<20 {
		return fmt.Errorf("the recording has %d bytes, more than 1 MiB", len(db))
	}
	truth := struct {
		Server string `json:"server"`
		Rows   []row  `json:"rows"`
	}{Server: l.recipe.versions}
	for _, v := range rows {
		truth.Rows = append(truth.Rows, v.row)
	}
	text, err := json.MarshalIndent(truth, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "run.db"), db, 0o644),
		os.WriteFile(filepath.Join(dir, "truth.json"), append(text, '\n'), 0o644))
}
