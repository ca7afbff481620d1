package mcp

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/window"
)

// roots are the directories below which everything that is read lies, without symbolic links.
type roots []string

func openRoots(dirs []string) (out roots, err error) {
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	for _, dir := range dirs {
		path, err := filepath.Abs(dir)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return nil, fmt.Errorf("root %s: %w", dir, err)
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("root %s: it is no directory", dir)
		}
		out = append(out, path)
	}
	return out, nil
}

// holds reports whether a path, which has no symbolic links, is a root or below one.
func (r roots) holds(path string) bool {
	return slices.ContainsFunc(r, func(root string) bool {
		rel, err := filepath.Rel(root, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// find returns a path of an argument, below a root where it is not absolute, without symbolic links.
func (r roots) find(arg string) (string, error) {
	names := []string{arg}
	if !filepath.IsAbs(arg) {
		names = nil
		for _, root := range r {
			names = append(names, filepath.Join(root, arg))
		}
	}
	for _, name := range names {
		if path, err := filepath.EvalSymlinks(name); err == nil && r.holds(path) {
			return path, r.holdsLinks(path)
		}
	}
	return "", fmt.Errorf("%s: there is no such path below %s, the root of this server", clip(arg, maxText),
		strings.Join(r, ", "))
}

// holdsLinks refuses a directory, or that of a file, in which a link leads out of the roots.
func (r roots) holdsLinks(path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		path = filepath.Dir(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			continue
		}
		to, err := filepath.EvalSymlinks(filepath.Join(path, e.Name()))
		if err != nil || !r.holds(to) {
			return fmt.Errorf("%s in %s leads out of %s, the root of this server", clip(e.Name(), maxText), path,
				strings.Join(r, ", "))
		}
	}
	return nil
}

// run is an argument that names a run.
type run struct {
	arg      string // for a command line
	part     string // of it, as in @high/2
	path     string // of the directory or file
	recorded bool   // it has a recording, and is no export
}

// run reads [NAME=]RUN[@WHAT], and takes part for WHAT where there is none.
func (r roots) run(text, part string) (run, error) {
	a, err := window.Split(text, func(path string) bool {
		_, err := r.find(path)
		return err == nil
	})
	if err != nil {
		return run{}, err
	}
	path, err := r.find(a.Run)
	if err != nil {
		return run{}, err
	}
	if filepath.Base(path) == rundb.FileName {
		path = filepath.Dir(path)
	}
	_, err = os.Stat(filepath.Join(path, rundb.FileName))
	out := run{path: path, recorded: err == nil}
	switch {
	case a.Own && part != "":
		return out, fmt.Errorf("%s has a part already: leave out window", clip(text, maxText))
	case a.Own:
		out.part = text[strings.LastIndexByte(text, '@'):]
	case part != "":
		out.part = "@" + part
	}
	if a.Name != "" {
		a.Name += "="
	}
	out.arg = a.Name + path + out.part
	return out, nil
}

// key tells a question from others.
func (q *question) key() string {
	text := fmt.Sprintf("%q %q %q", q.tool, q.flags, q.words)
	for _, r := range q.runs {
		text += fmt.Sprintf(" %q", r.arg)
	}
	return text
}

// stamp is other when a file changed that a question depends on.
func (q *question) stamp() string {
	h := sha256.New()
	see := func(path string) {
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Size() > 0 {
			fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano())
		}
	}
	for _, r := range q.runs {
		see(r.path)
		for _, name := range []string{rundb.FileName, rundb.FileName + "-wal", "server_metrics_export.json"} {
			see(filepath.Join(r.path, name))
		}
	}
	for _, path := range q.files {
		see(path)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

// position is what a cursor holds: the next row of a question, while files are as they were.
type position struct {
	Question string `json:"q"`
	Stamp    string `json:"s"`
	Row      int    `json:"n"`
}

func (q *question) position(row int) position {
	sum := sha256.Sum256([]byte(q.key()))
	return position{base64.RawURLEncoding.EncodeToString(sum[:12]), q.stamp(), row}
}

// cursorAt is the cursor of a row.
func cursorAt(q *question, row int) string {
	text, _ := json.Marshal(q.position(row)) // of texts and a number it cannot fail
	return base64.RawURLEncoding.EncodeToString(text)
}

// readCursor returns the row that the cursor of a question means, 0 without one.
func readCursor(q *question) (int, error) {
	if q.cursor == "" {
		return 0, nil
	}
	var p position
	text, err := base64.RawURLEncoding.DecodeString(q.cursor)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	now := q.position(p.Row)
	switch {
	case err != nil || p.Row < 0 || p.Question != now.Question:
		return 0, errors.New("bad_cursor: it is of another question: call with the arguments of the answer that gave it")
	case p != now:
		return 0, errors.New("stale_cursor: the run changed since: ask again without a cursor")
	}
	return p.Row, nil
}
