package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/rundb"
)

// split copies each target of a recording into a run of its own, as the shards of a group of n.
func split(t *testing.T, from, to string, n int) (dirs []string) {
	t.Helper()
	whole, err := rundb.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	for i, target := range whole.Targets() {
		dir := filepath.Join(to, fmt.Sprint("shard", i))
		m := whole.Meta()
		if n == 9 {
			m.Host = fmt.Sprint("node", i)
		}
		m.ID, m.Shard, m.Group = rundb.NewID(), &rundb.Shard{I: i, N: n, By: []string{"__address__"}}, "bench"
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		w, err := rundb.Create(dir, m, rundb.WriterOptions{})
		if err == nil {
			_, err = w.AddTarget(target)
		}
		for _, mark := range whole.Marks() {
			if err == nil && (mark.Own() || i == 3) { // somebody told one of them
				err = w.Mark(mark)
			}
		}
		for s, failed := range whole.Snapshots(t.Context(), i) {
			if err == nil {
				err = failed
			}
			if err == nil {
				s.Target = 0
				err = w.Record(s)
			}
		}
		if err == nil {
			err = w.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// plainExport is a JSON export less what names the run.
func plainExport(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "server_metrics_export.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	delete(tree, "benchmark_id")
	ours := tree["scrapestat"].(map[string]any)
	delete(ours, "run_id")
	delete(ours, "command")
	out, err := json.MarshalIndent(tree, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestShards divides a recording of 8 servers into 8 shards, of which one was told of a phase: merged they are the
// whole, in any order. One that is missing is told, and 4 under --strict; what is not of the group is refused.
func TestShards(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole")
	args := []string{"simulate", "--record", whole, "--warmup", "5s", "--duration", "20s"}
	for i := range 8 {
		args = append(args, fmt.Sprintf("s%d=vllm,seed=%d,rate=4", i, i+1))
	}
	runOK(t, args...)
	runOK(t, "mark", whole, "steady", "--at", "2026-01-01T00:00:15Z")
	dirs := split(t, whole, dir, 8)
	runOK(t, "export", whole, "-o", filepath.Join(dir, "one"), "--slice-duration", "5s", "--formats", "json")
	want := plainExport(t, filepath.Join(dir, "one"))
	if !strings.Contains(want, `"steady"`) {
		t.Fatal("the whole has no phase steady")
	}
	runOK(t, append([]string{"export", "-o", filepath.Join(dir, "all"), "--slice-duration", "5s", "--formats", "json",
		"--strict"}, dirs...)...)
	if got := plainExport(t, filepath.Join(dir, "all")); got != want {
		a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("line %d of %d and %d: %s, want %s", i, len(a), len(b), a[i], b[i])
			}
		}
	}
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	foreign := split(t, whole, other, 9)
	for _, x := range []struct {
		code int
		text string
		args []string
	}{
		{exitDone, "", append(dirs[:2:2], dirs[3:]...)},
		{exitIncomplete, "of the 8 shards of bench 1 are missing: 2", append([]string{"--strict"}, append(dirs[:2:2],
			dirs[3:]...)...)},
		{exitUsage, "are both shard 1 of 8", append(dirs[:3:3], dirs[1])},
		{exitUsage, "is one of 9 shards", append(dirs[:3:3], foreign[4])},
		{exitDone, "", foreign},
		{exitDone, "", dirs[:1]},
	} {
		var out, talk bytes.Buffer
		args := append([]string{"export", "-o", filepath.Join(dir, "some"), "--formats", "json"}, x.args...)
		code := run(t.Context(), args, stdio{nil, &out, &talk})
		if text := plainExport(t, filepath.Join(dir, "some")); slices.Equal(x.args, foreign) &&
			!strings.Contains(text, `"clock_unknown"`) {
			t.Error("shards of several hosts, and nobody is told of their clocks")
		}
		if code != x.code || !strings.Contains(talk.String(), x.text) {
			t.Errorf("%q: exit %d, want %d\n%s", x.args, code, x.code, talk.String())
		}
	}
	if text := plainExport(t, filepath.Join(dir, "some")); strings.Contains(text, "shard_missing") {
		t.Error("a single shard by itself is told to lack the others")
	}
	lakeDir := filepath.Join(dir, "lake")
	runOK(t, append([]string{"lake", "add", "--to", lakeDir}, dirs...)...)
	var out, talk bytes.Buffer
	if code := run(t.Context(), []string{"lake", "ls", lakeDir}, stdio{nil, &out, &talk}); code != exitDone ||
		!strings.Contains(out.String(), "\nbench ") || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("lake of the shards: exit %d\n%s%s", code, out.String(), talk.String())
	}
}

// TestShardAuto finds the part of a Kubernetes Job, a StatefulSet and a Slurm array.
func TestShardAuto(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"3/20": {"JOB_COMPLETION_INDEX": "3", "SCRAPESTAT_SHARDS": "20", "HOSTNAME": "job-7"},
		"7/8":  {"HOSTNAME": "collector-7", "SCRAPESTAT_SHARDS": "8"},
		"2/4":  {"SLURM_ARRAY_TASK_ID": "12", "SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_COUNT": "4"},
		"":     {"HOSTNAME": "login", "SCRAPESTAT_SHARDS": "8"},
	} {
		got, err := shardOf(func(name string) string { return env[name] })
		if got != want || err == nil != (want != "") {
			t.Errorf("%v: %q, %v, want %q", env, got, err, want)
		}
	}
	if _, err := shardOf(func(string) string { return "" }); err == nil ||
		!strings.Contains(err.Error(), "JOB_COMPLETION_INDEX") {
		t.Errorf("nothing to go by: %v", err)
	}
}

// TestShardEmpty records the shard of a target that another one has: an empty run, and no failure.
func TestShardEmpty(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	var out, talk bytes.Buffer
	code := run(t.Context(), []string{"collect", "10.0.0.1:8000", "--shard", "2/8", "--run-id", "x", "--duration", "10ms",
		"--settle", "0", "-o", dir, "--formats", "json"}, stdio{nil, &out, &talk})
	if code != exitDone || !strings.Contains(talk.String(), "none of the targets is of shard 2 of 8") {
		t.Errorf("exit %d\n%s%s", code, out.String(), talk.String())
	}
	for _, args := range [][]string{{"--shard", "8/8", "--run-id", "x"}, {"--shard", "0/8"}, {"--run-id", "x"},
		{"--shard", "auto", "--run-id", "x"}} {
		args = append([]string{"collect", "10.0.0.1:8000", "-o", dir + "2"}, args...)
		if code := run(t.Context(), args, stdio{nil, &out, &talk}); code != exitUsage {
			t.Errorf("%q: exit %d", args, code)
		}
	}
}
