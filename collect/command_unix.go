//go:build unix

package collect

import (
	"os"
	"os/exec"
	"syscall"
)

// ownProcessGroup lets the whole tree of the command be ended together.
func ownProcessGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// signalGroup reaches the whole tree where the command has a group of its own, and
// else the process alone.
func signalGroup(cmd *exec.Cmd, sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	pid := cmd.Process.Pid
	if cmd.SysProcAttr != nil && cmd.SysProcAttr.Setpgid {
		pid = -pid
	}
	// It may be gone already; there is nothing to tell then.
	_ = syscall.Kill(pid, s)
}

func killGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGKILL) }

// killRest kills what a the command that has ended left of a group of its own. Its own
// number may be another process by now.
func killRest(cmd *exec.Cmd) {
	if cmd.SysProcAttr != nil && cmd.SysProcAttr.Setpgid {
		killGroup(cmd)
	}
}

func killedBy(exit *exec.ExitError) (sig int, ok bool) {
	status, isUnix := exit.Sys().(syscall.WaitStatus)
	if !isUnix || !status.Signaled() {
		return 0, false
	}
	return int(status.Signal()), true
}
