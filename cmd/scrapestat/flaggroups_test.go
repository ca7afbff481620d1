package main

import (
	"bytes"
	"strings"
	"testing"
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
