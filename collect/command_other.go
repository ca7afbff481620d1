//go:build !unix

package collect

import (
	"os"
	"os/exec"
)

// Without process groups only the command itself can be ended.
func ownProcessGroup(*exec.Cmd) {}

func signalGroup(cmd *exec.Cmd, sig os.Signal) {
	if err := cmd.Process.Signal(sig); err != nil {
		killGroup(cmd)
	}
}

func killGroup(cmd *exec.Cmd) {
	// The process may be gone already; there is nothing to tell then.
	_ = cmd.Process.Kill()
}

func killRest(*exec.Cmd) {}

func killedBy(*exec.ExitError) (sig int, ok bool) { return 0, false }
