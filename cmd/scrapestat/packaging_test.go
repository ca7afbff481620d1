package main

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestCompletions: every shell has one.
func TestCompletions(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out, talk bytes.Buffer
		if code := run(t.Context(), []string{"completion", shell}, stdio{nil, &out, &talk}); code != exitDone ||
			!strings.Contains(out.String(), "scrapestat") {
			t.Errorf("completion %s: exit code %d, %.100q", shell, code, out.String())
		}
	}
}

// TestCompletionValues: what the shells offer for a flag stands in its help, and the
// default is among it.
func TestCompletionValues(t *testing.T) {
	checked := 0
	for _, c := range descendants(newRootCmd(discard())) {
		path := strings.TrimPrefix(c.CommandPath(), "scrapestat ")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			values := flagValues(path, f.Name)
			if values == nil || len(values()) == 0 {
				return
			}
			checked++
			for _, v := range values() {
				if f.Name != "profile" && !strings.Contains(f.Usage+c.Long, v) {
					t.Errorf("%s --%s: completes %q, which the help does not have: %s", path, f.Name, v, f.Usage)
				}
			}
			for d := range strings.SplitSeq(strings.Trim(f.DefValue, "[]"), ",") {
				if d != "" && !slices.Contains(values(), d) {
					t.Errorf("%s --%s: the default %q is none of %q", path, f.Name, d, values())
				}
			}
		})
	}
	if checked < 20 {
		t.Errorf("%d flags have values, want at least 20", checked)
	}
}

// TestBuild: the stamp of a release counts, then what Go noted of the repository.
func TestBuild(t *testing.T) {
	const hash = "0123456789abcdef0123456789abcdef01234567"
	noted := func(version string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	check := func(stamped build, info *debug.BuildInfo, want string) {
		t.Helper()
		var b bytes.Buffer
		if err := writeVersion(&b, describeBuild(stamped, info)); err != nil {
			t.Fatal(err)
		}
		here := " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
		if got := strings.ReplaceAll(b.String(), here, "\n"); got != want {
			t.Errorf("%+v: got %q, want %q", stamped, got, want)
		}
	}
	repository := []string{"vcs.revision", hash, "vcs.time", "2026-01-02T03:04:05Z"}
	check(build{"1.2.3", hash, "2026-11-21T00:00:00Z"}, noted("v9.9.9", repository...),
		"scrapestat 1.2.3\ncommit "+hash+" of 2026-11-21T00:00:00Z\n")
	check(build{"", hash, "2026-11-21T00:00:00Z"}, noted("(devel)"),
		"scrapestat 0.1.0-dev+0123456789ab\ncommit "+hash+" of 2026-11-21T00:00:00Z\n")
	check(build{}, noted("(devel)", repository...),
		"scrapestat 0.1.0-dev+0123456789ab\ncommit "+hash+" of 2026-01-02T03:04:05Z\n")
	check(build{}, noted("(devel)", append(repository, "vcs.modified", "true")...),
		"scrapestat 0.1.0-dev+0123456789ab\ncommit "+hash+" with changes of 2026-01-02T03:04:05Z\n")
	check(build{}, noted("v1.0.0"), "scrapestat v1.0.0\n")
	check(build{}, noted("", "vcs.modified", "false"), "scrapestat 0.1.0-dev\n")
}
