//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	var bodies []row
	err = serve(ctx, dir, all, func() (err error) {
		bodies, err = moved(ctx, all, func() error { return l.collect(ctx, s, dir, recording, all) })
		return err
	})
	if err != nil {
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
	rows := slices.Clone(s.rows)
	for i, r := range rows {
		value, known := truth[r.Truth]
		if rows[i].Value = value; !known {
			return nil, fmt.Errorf("the client counts no %q: %v", r.Truth, truth)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(truth)) {
		if ask, told := strings.CutPrefix(key, asked); told {
			rows = append(rows, row{Ask: ask, Value: truth[key], Within: 1e-9, many: true})
		}
	}
	if truth[killed] == 0 {
		rows = append(rows, slices.DeleteFunc(bodies, func(r row) bool {
			_, told := truth[asked+r.Ask]
			return told || l.recipe.besides[r.Ask] != ""
		})...)
	}
	if out, err = l.ask(ctx, recording, rows); err != nil {
		return nil, err
	}
	for _, expr := range s.fails {
		out = append(out, l.mustFail(ctx, recording, expr))
	}
	if l.update && !s.unkept {
		if err := l.keep(s, recording, rows); err != nil {
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
		if p.follow != "" {
			args = append(args, p.name+"-"+l.recipe.name+"="+p.follow)
		}
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
			return nil, exit.ExitCode(), fmt.Errorf("scrapestat %s: %w\n%s", args[0], err, exit.Stderr)
		}
		return text, exit.ExitCode(), nil
	}
	return text, 0, err
}

// ask reads quantities as a user's gate does, each the sum over all series that it is asked of.
func (l *lab) ask(ctx context.Context, recording string, rows []row) (out []verdict, err error) {
	args := []string{"check", recording, "--format", "json"}
	for _, r := range rows {
		args = append(args, "--assert", fmt.Sprintf("%s == %s", r.Ask, strconv.FormatFloat(r.Value, 'f', -1, 64)))
	}
	text, _, err := l.output(ctx, args...)
	if err != nil {
		return nil, err
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
	if err := json.Unmarshal(text, &got); err != nil || got.Schema != "scrapestat.check" || got.Version != 2 ||
		len(got.Checks) != len(rows) {
		return nil, fmt.Errorf("read answer of check: %s %d, %d of %d: %w", got.Schema, got.Version,
			len(got.Checks), len(rows), err)
	}
	for i, c := range got.Checks {
		v := verdict{row: rows[i]}
		if len(c.Outcomes) == 0 {
			v.status = "no number"
		}
		for _, o := range c.Outcomes {
			if o.Value == nil {
				v.status = o.Verdict + " " + o.Reason
				continue
			}
			v.ours += *o.Value
		}
		out = append(out, v)
	}
	return out, nil
}

// mustFail judges whether a gate that must not let the run pass fails.
func (l *lab) mustFail(ctx context.Context, recording, expr string) verdict {
	_, code, err := l.output(ctx, "check", recording, "--assert", expr)
	v := verdict{row: row{Ask: "exit code of check " + expr, Value: 3}, ours: float64(code)}
	if err != nil {
		v.status = err.Error()
	}
	return v
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
func (l *lab) keep(s *scenario, recording string, rows []row) error {
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
	lines := make([]string, len(rows))
	for i, r := range rows {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		lines[i] = string(text)
	}
	fails, err := json.Marshal(append([]string{}, s.fails...))
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, "{\"server\": %q,\n\"fails\": %s,\n\"rows\": [\n%s\n]}\n", l.recipe.versions, fails,
		strings.Join(lines, ",\n"))
	return errors.Join(os.WriteFile(filepath.Join(dir, "run.db"), db, 0o644),
		os.WriteFile(filepath.Join(dir, "truth.json"), text, 0o644))
}
