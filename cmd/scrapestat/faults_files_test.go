//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/faults"
)

// TestCatalogueFiles has the cases D04, E01, E05, X02, X05 and X06: what lies on
// the disk.
func TestCatalogueFiles(t *testing.T) {
	t.Parallel()
	t.Run("D04 one export fails", oneExportFails)
	t.Run("E01 nothing collected", nothingCollected)
	t.Run("E05 hostile runs", hostileRuns)
	t.Run("E08 gate files", gateFiles)
	t.Run("X05 hostile configuration", hostileConfig)
	t.Run("X06 umask", umask)
	t.Run("X06 links", links)
}

// TestCatalogueNames has what changes the directory of this process.
func TestCatalogueNames(t *testing.T) { t.Run("X02 run names", runNames) }

// oneExportFails puts a folder where a file is to go: the others are written.
func oneExportFails(t *testing.T) {
	dir := newRun(t)
	path := filepath.Join(dir, "server_metrics_export.json")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	said := try(t, exitFailed, "server_metrics_export.json: is a directory", "export", dir, "--formats",
		"json,csv,jsonl,parquet")
	for _, format := range []string{"csv", "jsonl", "parquet"} {
		if !strings.Contains(said, "wrote "+filepath.Join(dir, "server_metrics_export."+format)) {
			t.Errorf("%s was not written: %s", format, said)
		}
	}
	if err := faults.Check(t.Context(), faults.Evidence{Dir: dir,
		Formats: []string{"csv", "jsonl", "parquet"}}); err != nil {
		t.Error(err)
	}
}

func nothingCollected(t *testing.T) {
	srv := serveBad(t, goodScript)
	srv.Close()
	dir := filepath.Join(t.TempDir(), "run")
	try(t, exitNothing, "nothing could be collected",
		append([]string{"collect", srv.Addr, "-o", dir, "--formats", "json,csv,jsonl,parquet"}, quickRun...)...)
	checkFaultyRun(t, dir, "json", "csv", "jsonl", "parquet")
	try(t, exitDone, "", "show", dir)
}

// hostileRuns reads what is no run.
func hostileRuns(t *testing.T) {
	tmp := t.TempDir()
	put := func(name string, data []byte) string {
		path := filepath.Join(tmp, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.MkdirAll(filepath.Join(tmp, "folder", "run.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	try(t, exitFailed, "not a file", "show", filepath.Join(tmp, "folder"))
	put("junk/run.db", bytes.Repeat([]byte("junk "), 1000))
	try(t, exitFailed, "not a database", "show", filepath.Join(tmp, "junk"))
	run := newRun(t)
	data, err := os.ReadFile(filepath.Join(run, "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for i := range 10 { // cut or changed anywhere: an error or what is left, never a panic
		bad := bytes.Clone(data)
		if bad[rng.IntN(len(bad))] ^= byte(1 + rng.IntN(255)); i%2 == 0 {
			bad = bad[:rng.IntN(len(bad))]
		}
		put(fmt.Sprint("bad", i, "/run.db"), bad)
		if code, talk := runQuiet("export", filepath.Join(tmp, fmt.Sprint("bad", i)), "--formats", "csv"); code != exitDone &&
			code != exitFailed {
			t.Errorf("exit %d: %s", code, talk)
		}
	}
	long := put("long.jsonl", append(append([]byte(`{"endpoint_url":"`), bytes.Repeat([]byte("x"), 80<<20)...), '"', '}',
		'\n'))
	code, talk := runQuiet("import", "aiperf-jsonl", long, "-o", filepath.Join(tmp, "imported"))
	if code == exitDone || talk == "" {
		t.Errorf("a line of 80 MiB: exit %d: %s", code, talk)
	}
}

// gateFiles gives command check what is wrong, without a run: it is told at the
// start of a run, not at its end.
func gateFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slo.yml")
	if err := os.WriteFile(file, []byte("checks:\n- metric: g_seconds\n  nosuch: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	try(t, exitUsage, `unknown key "nosuch"`, "check", "--slo", file)
	try(t, exitUsage, "no known unit", "check", "--assert", "g_seconds p99 < 5parsecs")
	try(t, exitUsage, "is no number", "check", "--assert", "g_seconds p99 <")
	try(t, exitUsage, "not negative", "check", "--assert", "g_seconds p99 ~= 5 ± -3")
	try(t, exitDone, "well formed", "check", "--assert", "g_seconds p99 < 450ms")
}

func runNames(t *testing.T) {
	srv := serveBad(t, goodScript)
	work := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(work)
	base, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a\x00b", strings.Repeat("n", 300)} {
		if code, _ := runQuiet(append([]string{"collect", srv.Addr, "-o", name}, quickRun...)...); code == exitDone {
			t.Errorf("run directory %.20q was made", name)
		}
	}
	oddNames(t, base, srv.Addr)
	// Tags and target names go into files, never into paths.
	try(t, exitDone, "", append([]string{"collect", "x=" + srv.Addr, "-o", "run", "--tag", "name=../../etc/x", "--formats",
		"json"}, quickRun...)...)
	entries, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "run" {
		t.Errorf("the folder holds %v, want run alone", entries)
	}
}

// oddNames records into folders of names that mean something to somebody else, and
// reads them again: all goes to the path that was given, and there only.
func oddNames(t *testing.T, base, address string) {
	t.Helper()
	// A leading - is a value behind -o, as for every program; bare, it is a flag.
	try(t, exitUsage, "unknown shorthand flag", "show", "-n")
	for _, name := range []string{"CON", "-n", "../up/etc/x"} {
		try(t, exitDone, "into "+name, append([]string{"collect", address, "-o", name, "--formats", "json"}, quickRun...)...)
		try(t, exitDone, "", "show", "--", name)
		dir := filepath.Join(base, name)
		checkFaultyRun(t, dir, "json")
		if strings.HasPrefix(name, "..") {
			dir = filepath.Join(base, "..", "up")
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func hostileConfig(t *testing.T) {
	tmp := t.TempDir()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'l'; c++ {
		p := string(c - 1)
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+p+",", 10), ","))
	}
	path := filepath.Join(tmp, "bomb.yml")
	if err := os.WriteFile(path, []byte(bomb+"scrape_configs: *k\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	try(t, exitUsage, "bomb.yml", "collect", "--config", path, "-o", filepath.Join(tmp, "r"))
	try(t, exitUsage, "/dev/zero", "collect", "--config", "/dev/zero", "-o", filepath.Join(tmp, "r"))
	include := filepath.Join(tmp, "include.yml")
	if err := os.WriteFile(include, []byte("scrape_config_files: [/dev/zero]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	try(t, exitUsage, "/dev/zero", "collect", "--config", include, "-o", filepath.Join(tmp, "r"))
	list := filepath.Join(tmp, "list.yml")
	if err := os.WriteFile(list, []byte("scrape_configs: [{job_name: j, file_sd_configs: [{files: [/dev/zero]}]}]\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	try(t, exitDone, "read /dev/zero", "collect", "--config", list, serveBad(t, goodScript).Addr, "-o",
		filepath.Join(tmp, "listed"), "--formats", "json", "--duration", "50ms", "--settle", "0s")
	try(t, exitUsage, "/dev/zero", "collect", "127.0.0.1:1", "--bearer-token-file", "/dev/zero", "-o",
		filepath.Join(tmp, "r"))
	openToAll(t, tmp)
}

// openToAll has files of settings that everybody may change: they are used, with
// a warning that names them.
func openToAll(t *testing.T, tmp string) {
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(tmp, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	srv := serveBad(t, goodScript)
	check := func(name, text string, args ...string) {
		t.Helper()
		for _, mode := range []os.FileMode{0o666, 0o602, 0o664} {
			path := file(name, text, mode)
			_, talk := runQuiet(append(args, path)...)
			said := strings.Count(talk, name+" may be changed by everybody")
			if want := int(mode&0o002) / 2; said != want {
				t.Errorf("%s of mode %o: %d warnings, want %d:\n%s", name, mode, said, want, talk)
			}
		}
	}
	collect := []string{"collect", "--force", "-o", filepath.Join(tmp, "open"), "--formats", "json", "--duration", "50ms",
		"--settle", "0s"}
	config := fmt.Sprintf("scrape_configs: [{job_name: j, static_configs: [{targets: [%q]}]}]\n", srv.Addr)
	check("prom.yml", config, append(collect, "--config")...)
	check("token", "hidden", append(collect, srv.Addr, "--bearer-token-file")...)
	check("basic", "user:hidden", append(collect, srv.Addr, "--basic-auth-file")...)
	check("cat.yaml", "pack: e\n", append(collect, srv.Addr, "--catalog")...)
	check("slo.yaml", "checks: ['a.rate < 5']\n", "check", "--slo")
	check("ts.yaml", "ts_metrics: {counter: [{name: a, unit: Count, dimensions: [Hostname]}]}\n",
		append(collect, srv.Addr, "--torchserve-metrics-yaml")...)
}

func umask(t *testing.T) {
	srv := serveBad(t, goodScript)
	dir := filepath.Join(t.TempDir(), "deep", "run")
	cmd := exec.Command("sh", "-c", `umask 000; exec scrapestat "$@"`, "sh", "collect", srv.Addr, "-o", dir, "--formats",
		"json,csv,jsonl,parquet", "--duration", "100ms", "--interval", "20ms", "--settle", "0s")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkFaultyRun(t, dir, "json", "csv", "jsonl", "parquet")
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v, want mode 0700", d, info.Mode(), err)
		}
	}
}

// links puts links where files go: what they lead to stays as it is.
func links(t *testing.T) {
	dir := newRun(t)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("keep me"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "server_metrics_export.csv")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	try(t, exitDone, "", "export", dir, "--formats", "csv")
	if data, err := os.ReadFile(victim); err != nil || string(data) != "keep me" {
		t.Errorf("the file behind the link holds %q, %v", data, err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != 0 {
		t.Errorf("the export is %v, %v", info.Mode(), err)
	}
}
