package faults

import (
	"os"
	"path/filepath"
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
