package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// stamp says which commit a release is made of.
type stamp struct {
	commit string    // all of its hash
	at     time.Time // of the commit, UTC
	tag    string    // of the commit, without its v
}

// date is the time of the commit as the program prints it.
func (s stamp) date() string { return s.at.Format(time.RFC3339) }

// readStamp asks git. A tree with changes is refused: nobody could build it again.
func readStamp(ctx context.Context, root string) (s stamp, err error) {
	changed, err := output(ctx, root, nil, "git", "status", "--porcelain")
	if err != nil {
		return s, err
	}
	if len(changed) > 0 {
		return s, fmt.Errorf("make a release: commit the changes first, or release from a clone:\n%s", changed)
	}
	head, err := output(ctx, root, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return s, err
	}
	var seconds int64
	if _, err := fmt.Sscan(string(head), &s.commit, &seconds); err != nil {
		return s, fmt.Errorf("read the time of commit %q: %w", head, err)
	}
	s.at = time.Unix(seconds, 0).UTC()
	// Without a tag git describe fails.
	tag, err := output(ctx, root, nil, "git", "describe", "--tags", "--exact-match", "--match", "v[0-9]*")
	if err != nil {
		return s, errors.Join(fmt.Errorf("make a release: commit %s has no tag; give it one (git tag v1.2.3)", s.commit),
			ctx.Err())
	}
	s.tag = strings.TrimPrefix(strings.TrimSpace(string(tag)), "v")
	return s, nil
}

// named returns the version of the tag, which is that of the first heading of CHANGELOG.md: "## 1.2.3, 2026-11-22", or
// "## 1.2.3, unreleased" where the tag is v1.2.3-rc.1.
func (r *release) named() (string, error) {
	form := versionForm.FindStringSubmatch(r.stamp.tag)
	if form == nil {
		return "", fmt.Errorf("read tag v%s: want v1.2.3 or v1.2.3-rc.1", r.stamp.tag)
	}
	text, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	_, heading, _ := strings.Cut("\n"+string(text), "\n## ")
	heading, _, _ = strings.Cut(heading, "\n")
	version, when, _ := strings.Cut(heading, ", ")
	if _, err := time.Parse(time.DateOnly, when); version != form[1] || err != nil && form[2] == "" {
		return "", fmt.Errorf("make a release of tag v%s: CHANGELOG.md begins with %q, want \"## %s, \" and the date",
			r.stamp.tag, "## "+heading, form[1])
	}
	return r.stamp.tag, nil
}

// build makes the static binary for p, and looks whether it is one. The program for our own use has the tag man.
func (r *release) build(ctx context.Context, p platform, path, tags string) error {
	flags := fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s -X main.date=%s", r.version, r.stamp.commit,
		r.stamp.date())
	// -buildvcs=false: the stamp is ours, so that a clone and an archive of the
	// sources give the same bytes.
	_, err := output(ctx, r.root, environment(p),
		"go", "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", flags, "-o", path, "./cmd/scrapestat")
	if err == nil {
		err = check(path, p)
	}
	if err != nil {
		return fmt.Errorf("build for %s: %w", p, err)
	}
	return nil
}

// environment is ours without what would get into the binary.
func environment(p platform) []string {
	return append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off",
		"GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0")
}

// check refuses a binary for something else, with a path of this machine in it, or one that needs more than the kernel.
// (Programs for macOS and Windows call the libraries of the system, Go's own always do.)
func check(path string, p platform) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	built := map[string]string{}
	for _, s := range info.Settings {
		built[s.Key] = s.Value
	}
	for key, want := range map[string]string{"GOOS": p.os, "GOARCH": p.arch, "CGO_ENABLED": "0", "-trimpath": "true"} {
		if built[key] != want {
			return fmt.Errorf("it was built with %s=%s, want %s", key, built[key], want)
		}
	}
	if p.os != "linux" {
		return nil
	}
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, prog := range f.Progs {
		if prog.Type == elf.PT_INTERP || prog.Type == elf.PT_DYNAMIC {
			return errors.New("it is not static: it needs a dynamic linker")
		}
	}
	return nil
}

// name asks the program that was built for its version, and holds it against the
// commit: the linker does not complain when it finds nothing to stamp.
func (r *release) name(ctx context.Context, program string) error {
	text, err := output(ctx, r.root, nil, program, "version")
	if err != nil {
		return err
	}
	switch {
	case !strings.HasPrefix(string(text), "scrapestat "+r.version+" "):
		return fmt.Errorf("stamp the version %s: the program prints %q", r.version, text)
	case !strings.Contains(string(text), r.stamp.commit) || !strings.Contains(string(text), r.stamp.date()):
		return fmt.Errorf("stamp commit %s of %s: the program prints %q", r.stamp.commit, r.stamp.date(), text)
	}
	return nil
}

// output runs a program in dir and returns what it wrote to stdout; env nil is ours.
func output(ctx context.Context, dir string, env []string, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var out, complaint bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run %s %s: %w: %s", program, strings.Join(args[:min(2, len(args))], " "), err,
			bytes.TrimSpace(complaint.Bytes()))
	}
	return out.Bytes(), nil
}
