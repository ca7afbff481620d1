//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// ownProcessGroup lets the whole tree of COMMAND be ended together.
func ownProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func signalGroup(cmd *exec.Cmd, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		// The group may be gone already; there is nothing to tell then.
		_ = syscall.Kill(-cmd.Process.Pid, s)
	}
}

func killGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGKILL) }

func killedBy(exit *exec.ExitError) (sig int, ok bool) {
	status, isUnix := exit.Sys().(syscall.WaitStatus)
	if !isUnix || !status.Signaled() {
		return 0, false
	}
	return int(status.Signal()), true
}
