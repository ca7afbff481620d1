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
	"strings"
	"time"
)

// stamp says which commit a release is made of.
type stamp struct {
	commit string    // all of its hash
	at     time.Time // of the commit, UTC
	tag    string    // a tag of the commit without its v, "" where it has none
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
	// Without a tag git describe fails, and the program names itself by its commit.
	if tag, err := output(ctx, root, nil, "git", "describe", "--tags", "--exact-match", "--match", "v[0-9]*"); err == nil {
		s.tag = strings.TrimPrefix(strings.TrimSpace(string(tag)), "v")
	}
	if s.tag != "" && !versionForm.MatchString(s.tag) {
		return s, fmt.Errorf("read tag %q: it can be no file name; give -version", s.tag)
	}
	return s, ctx.Err()
}

// build makes the static binary for p, and looks whether it is one. The program
// for our own use has the tag man.
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

// check refuses a binary for something else, with a path of this machine in it,
// or one that needs more than the kernel. (Programs for macOS and Windows call
// the libraries of the system, Go's own always do.)
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
	words := strings.Fields(string(text))
	switch {
	case len(words) < 2 || words[0] != "scrapestat" || !versionForm.MatchString(words[1]):
		return fmt.Errorf("read the version of the program: it prints %q", text)
	case r.version != "" && words[1] != r.version:
		return fmt.Errorf("stamp the version %s: the program prints %q", r.version, text)
	case !strings.Contains(string(text), r.stamp.commit) || !strings.Contains(string(text), r.stamp.date()):
		return fmt.Errorf("stamp commit %s of %s: the program prints %q", r.stamp.commit, r.stamp.date(), text)
	}
	r.version = words[1]
	return nil
}

// output runs a program in dir and returns what it wrote to stdout; env nil is
// ours.
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
