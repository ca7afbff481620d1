package main

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxSearched bounds the files that are looked at for --import-requests.
const maxSearched = 200_000

// importWritten imports the newest file that matches --import-requests and was written since, and marks the phases of
// AIPerf's list beside it. What goes wrong is a warning: the run is recorded.
func (o *collectOptions) importWritten(ctx context.Context, since time.Time, say *progress) {
	if o.importPattern == "" {
		return
	}
	since = since.Truncate(time.Second) // as coarse as the times of files may be
	file := newestFile(o.importPattern, since)
	if file == "" {
		say.logf("warning: no_requests_file: nothing that matches %s was written during the run", o.importPattern)
		return
	}
	std := stdio{strings.NewReader(""), talkOf(say), talkOf(say)}
	if code := run(ctx, []string{"requests", "import", "-o", o.out, "--", file}, std); code != exitDone {
		say.logf("warning: --import-requests: %s was not imported", file)
	}
	list := filepath.Join(filepath.Dir(file), phaseList)
	if info, err := os.Stat(list); err != nil || info.ModTime().Before(since) {
		return
	}
	if err := markFrom(ctx, o.out, []string{list}, "", std); err != nil {
		say.logf("warning: --import-requests: %v", err)
	}
}

// progressTalk says what is written to it.
type progressTalk struct{ *progress }

func talkOf(say *progress) progressTalk { return progressTalk{say} }

// Write implements io.Writer.
func (p progressTalk) Write(text []byte) (int, error) {
	p.logf("%s", strings.TrimSuffix(string(text), "\n"))
	return len(text), nil
}

// newestFile is the newest file that matches a pattern and was written since, "" for none. ** in the pattern is any
// number of directories.
func newestFile(pattern string, since time.Time) (newest string) {
	parts := strings.Split(filepath.ToSlash(filepath.Clean(pattern)), "/")
	n := slices.IndexFunc(parts, func(s string) bool { return strings.ContainsAny(s, "*?[") })
	if n < 0 {
		n = len(parts) - 1
	}
	root := strings.Join(parts[:n], "/")
	if root == "" && n > 0 {
		root = "/"
	} else if root == "" {
		root = "."
	}
	left, last := maxSearched, since
	// A directory that cannot be read has no file.
	_ = filepath.WalkDir(filepath.FromSlash(root), func(name string, e fs.DirEntry, err error) error {
		if left--; left < 0 {
			return fs.SkipAll
		}
		if err != nil || e.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil || !matchParts(parts[n:], strings.Split(filepath.ToSlash(rel), "/")) {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && !info.ModTime().Before(last) {
			newest, last = name, info.ModTime()
		}
		return nil
	})
	return newest
}

// matchParts matches the parts of a path.
func matchParts(pattern, name []string) bool {
	switch {
	case len(pattern) == 0:
		return len(name) == 0
	case pattern[0] == "**":
		return matchParts(pattern[1:], name) || len(name) > 0 && matchParts(pattern, name[1:])
	case len(name) == 0:
		return false
	}
	ok, err := path.Match(pattern[0], name[0])
	return err == nil && ok && matchParts(pattern[1:], name[1:])
}

// checkPattern refuses a pattern that matches nothing for its form.
func checkPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return usagef("--import-requests %q: want a pattern such as 'artifacts/**/profile_export.jsonl'", pattern)
	}
	return nil
}
