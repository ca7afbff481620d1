package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// FiguresVar is the environment variable that names the folder in which the long
// runs leave their figures, from which docs/data/reliability.md is made.
const FiguresVar = "SCRAPESTAT_FIGURES"

// Logger is what of a test a figure needs.
type Logger interface {
	Logf(format string, args ...any)
	Helper()
	Failed() bool
	Errorf(format string, args ...any)
}

// Figure logs what a run has shown and, when [FiguresVar] is set and nothing has
// failed, keeps it under its name with the command that shows it again.
func Figure(t Logger, name, figure, command string) {
	t.Helper()
	t.Logf("%s: %s", name, figure)
	dir := os.Getenv(FiguresVar)
	if dir == "" || t.Failed() {
		return
	}
	text := figure + "\n" + command + "\n"
	if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(text), 0o600); err != nil {
		t.Errorf("keep figure: %v", err)
	}
}

// Kept is a figure that a run has left.
type Kept struct{ Name, Figure, Command string }

// Figures reads the figures in dir, in the order of their names.
func Figures(dir string) ([]Kept, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var out []Kept
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		figure, command, _ := strings.Cut(strings.TrimSpace(string(data)), "\n")
		out = append(out, Kept{strings.TrimSuffix(filepath.Base(path), ".txt"), figure, command})
	}
	return out, nil
}

// Fuzzed is what a fuzz target has been through, in all runs of .ci/fuzzlong.
type Fuzzed struct {
	Kind, Package, Target string // what it tries, and where it is
	Wanted                int    // executions, by .ci/fuzzgoals
	Executions, Guided    int    // in all, and those that were guided by coverage
	Inputs                int    // of new coverage
	Failures              int    // inputs that failed; each is a seed since
}

// ReadFuzzed reads the goals and what was reached of them, in the order of the
// goals.
func ReadFuzzed(goals, ledger string) ([]Fuzzed, error) {
	wanted, err := os.ReadFile(goals)
	if err != nil {
		return nil, err
	}
	reached, err := os.ReadFile(ledger)
	if err != nil {
		return nil, err
	}
	var out []Fuzzed
	at := map[string]int{}
	for line := range strings.Lines(string(wanted)) {
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		var f Fuzzed
		if _, err := fmt.Sscan(line, &f.Kind, &f.Package, &f.Target, &f.Wanted); err != nil {
			return nil, fmt.Errorf("read %s: %q: %w", goals, line, err)
		}
		at[f.Package+" "+f.Target] = len(out)
		out = append(out, f)
	}
	for line := range strings.Lines(string(reached)) {
		var f Fuzzed
		if _, err := fmt.Sscan(line, &f.Kind, &f.Package, &f.Target, &f.Executions, &f.Guided, &f.Inputs,
			&f.Failures); err != nil {
			return nil, fmt.Errorf("read %s: %q: %w", ledger, line, err)
		}
		i, ok := at[f.Package+" "+f.Target]
		if !ok {
			return nil, fmt.Errorf("read %s: %s %s is not in %s", ledger, f.Package, f.Target, goals)
		}
		out[i].Executions, out[i].Guided, out[i].Inputs, out[i].Failures = f.Executions, f.Guided, f.Inputs, f.Failures
	}
	return out, nil
}
