package main

import (
	"slices"
	"testing"

	"github.com/scrapestat/scrapestat/compare"
	"github.com/scrapestat/scrapestat/rundb"
)

// TestSettingsOf has compare find each option that changes what is measured, in the manifest that collect writes and
// in one with the names that flags had.
func TestSettingsOf(t *testing.T) {
	t.Parallel()
	o := collectOptions{maxShare: 7}
	for _, old := range []bool{false, true} {
		dir, options := t.TempDir(), o.settings()
		if old {
			options["max-scrape-share"] = options["scrape-budget"]
			delete(options, "scrape-budget")
		}
		if err := rundb.WriteManifest(dir, rundb.Manifest{Options: options}); err != nil {
			t.Fatal(err)
		}
		got := settingsOf(dir, rundb.Meta{})
		for _, name := range recordingOptions {
			if !slices.ContainsFunc(got, func(s compare.Setting) bool { return s.Kind == "option" && s.Name == name }) {
				t.Errorf("old names %v: %s is not compared", old, name)
			}
		}
		if !slices.Contains(got, compare.Setting{Kind: "option", Name: "scrape-budget", Value: "7"}) {
			t.Errorf("old names %v: %v", old, got)
		}
	}
}
