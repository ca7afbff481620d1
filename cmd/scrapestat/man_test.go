//go:build man

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestManPages: a page for each command, with its flags, the same bytes twice,
// from the program that a release builds for it.
func TestManPages(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		try(t, exitDone, "", "man", dir)
	}
	for _, name := range []string{"scrapestat.1", "scrapestat-collect.1", "scrapestat-check.1",
		"scrapestat-requests-proxy.1"} {
		x, err := os.ReadFile(filepath.Join(a, name))
		if err != nil {
			t.Error(err)
			continue
		}
		y, err := os.ReadFile(filepath.Join(b, name))
		if err != nil || !bytes.Equal(x, y) {
			t.Errorf("%s differs from time to time (%v)", name, err)
		}
		if !bytes.HasPrefix(x, []byte(".nh\n.TH \"SCRAPESTAT\" \"1\"")) || bytes.Contains(x, []byte("\n\t")) {
			t.Errorf("%s is no man page: %.200q", name, x)
		}
	}
	page, err := os.ReadFile(filepath.Join(a, "scrapestat-check.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n.TP\n\\fB--assert\\fP=[]\n\\fBexpression\\fR that must hold",
		"\n.EX\n  resets               no counter", "\n.SH EXAMPLE\n"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("scrapestat-check.1 has no %q", want)
		}
	}
	pages, err := filepath.Glob(filepath.Join(a, "*.1"))
	if err != nil || len(pages) < 25 {
		t.Errorf("%d pages, %v", len(pages), err)
	}
}
