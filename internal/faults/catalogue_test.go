package faults_test

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Case is one case of the catalogue.
type Case struct {
	ID    string // a letter for the area, and a number
	Title string
}

//go:embed catalogue.txt
var catalogue string

// Catalogue returns all cases, in the order of their ids within each area.
func Catalogue() []Case {
	var out []Case
	for line := range strings.Lines(catalogue) {
		id, title, _ := strings.Cut(strings.TrimSpace(line), " ")
		out = append(out, Case{id, title})
	}
	return out
}

// Area is what the letter of an id stands for.
func Area(id string) string {
	return map[byte]string{'T': "Transport", 'P': "Exposition text", 'S': "Series and time", 'D': "Process, disk, crash",
		'E': "Exports, compare, gate", 'X': "Security of text"}[id[0]]
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
