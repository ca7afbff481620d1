package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestOldNames: a flag that was renamed is shown by its new name alone, taken by both
// wherever it is a flag, and kept in manifests by the new one.
func TestOldNames(t *testing.T) {
	for old, name := range renamedFlags {
		found := 0
		for _, spelling := range []string{old, name} {
			for _, c := range allCommands(newRootCmd(discard())) {
				f := c.Flags().Lookup(name)
				if f == nil {
					continue
				}
				found++
				value := map[string]string{"bool": "true", "duration": "7ms"}[f.Value.Type()]
				if value == "" {
					value = "7"
				}
				if err := c.ParseFlags([]string{"--" + spelling + "=" + value}); err != nil || f.Value.String() != value ||
					!f.Changed {
					t.Errorf("%s --%s=%s: %v, value %s", c.CommandPath(), spelling, value, err, f.Value)
				}
				if given := strings.Join(givenFlags(c), " "); given != "--"+name+"="+value {
					t.Errorf("%s --%s: kept as %q", c.CommandPath(), spelling, given)
				}
				if c.Flags().Lookup("help-all") != nil {
					_ = c.Flags().Set("help-all", "true")
				}
				var help bytes.Buffer
				c.SetOut(&help)
				if err := c.Help(); err != nil || strings.Contains(help.String(), "--"+old+" ") ||
					!strings.Contains(help.String(), "--"+name) {
					t.Errorf("%s --help: %v, shows --%s or not --%s", c.CommandPath(), err, old, name)
				}
			}
		}
		if found < 2 {
			t.Errorf("no command has --%s", name)
		}
	}
}

// TestShortHelp: --help of no command shows more flags than people read, each flag that collect's names exists, and
// --help-all shows all.
func TestShortHelp(t *testing.T) {
	count := func(c *cobra.Command) int {
		var help bytes.Buffer
		c.SetOut(&help)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		return len(regexp.MustCompile(`(?m)^ +(?:-\w, )?--[a-z]`).FindAllString(help.String(), -1))
	}
	for _, c := range allCommands(newRootCmd(discard())) {
		c.InitDefaultHelpFlag()
		if n := count(c); n > shownFlags+1 {
			t.Errorf("%s --help shows %d flags", c.CommandPath(), n)
		}
		all := 0
		c.Flags().VisitAll(func(*pflag.Flag) { all++ })
		if c.Flags().Lookup("help-all") == nil {
			continue
		}
		if err := c.ParseFlags([]string{"--help-all"}); err != nil || c.Flags().Lookup("help").Value.String() != "true" {
			t.Errorf("%s --help-all asks for no help: %v", c.CommandPath(), err)
		}
		if n := count(c); n < all {
			t.Errorf("%s --help-all shows %d of %d flags", c.CommandPath(), n, all)
		}
	}
	collect := newCollectCmd(discard())
	for _, g := range collectFlags {
		for _, name := range strings.Fields(g[1]) {
			if collect.Flags().Lookup(name) == nil {
				t.Errorf("collect has no --%s", name)
			}
		}
	}
}
