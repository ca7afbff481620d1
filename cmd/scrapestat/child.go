package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// childGrace is how long COMMAND may take to end after a signal was passed on, if
// collectOptions do not say otherwise.
const childGrace = 10 * time.Second

// child is COMMAND: the load generator that the collection wraps.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	code int           // valid once done is closed
	err  error         // why it could not be run; valid once done is closed

	grace   time.Duration // how long it may take to end after a signal
	stopped bool          // we ended it: its code is not its verdict
}

// newChild finds COMMAND without starting it, so that a misspelt one fails
// before anything is recorded. It returns nil for an empty command.
func newChild(argv []string, grace time.Duration, std stdio) (*child, error) {
	if len(argv) == 0 {
		return nil, nil
	}
	path, err := exec.LookPath(argv[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		code := exitNotFound
		if errors.Is(err, os.ErrPermission) {
			code = exitNotExec
		}
		return nil, &codeError{code, fmt.Errorf("find command %q: %w", argv[0], err)}
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = std.in, std.out, std.err
	// A grandchild that keeps our pipes open must not hold up the end of the run.
	cmd.WaitDelay = 2 * time.Second
	if !isTerminal(std.in) {
		// On a terminal a group of its own could not read it: a load generator
		// that asks for a password would stop. There the group is shared, and the
		// terminal's own signals reach both.
		ownProcessGroup(cmd)
	}
	if grace == 0 {
		grace = childGrace
	}
	return &child{cmd: cmd, done: make(chan struct{}), grace: grace}, nil
}

// start runs the command and watches it. Cancelling ctx kills its whole
// process group. The caller must receive from c.done afterwards.
func (c *child) start(ctx context.Context) error {
	if err := c.cmd.Start(); err != nil {
		return &codeError{exitNotExec, fmt.Errorf("start command %q: %w", c.cmd.Args[0], err)}
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			killGroup(c.cmd)
		case <-ended:
		}
	}()
	go func() {
		defer close(c.done)
		defer close(ended)
		err := c.cmd.Wait()
		if errors.Is(err, exec.ErrWaitDelay) {
			// It ended well, and left somebody behind who kept our pipes.
			killRest(c.cmd)
			err = nil
		}
		c.code, c.err = exitCode(err)
	}()
	return nil
}

// stop passes a signal on to the process group and, if the command has not
// ended when its grace is over, kills the group. What is left of the group when
// the command has ended is killed too: nobody else would end it.
func (c *child) stop(sig os.Signal) {
	c.stopped = true
	signalGroup(c.cmd, sig)
	timer := time.NewTimer(c.grace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		killGroup(c.cmd)
		<-c.done
	}
	killRest(c.cmd)
}

// exitCode translates what Wait returned: the command's code, 128+n when signal
// n ended it, as a shell reports it.
func exitCode(err error) (int, error) {
	if err == nil {
		return 0, nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return exitFailed, fmt.Errorf("wait for command: %w", err)
	}
	if sig, ok := killedBy(exit); ok {
		return 128 + sig, nil
	}
	return exit.ExitCode(), nil
}

// ended reports whether the command is over or was never started.
func (c *child) ended() bool {
	if c.cmd.Process == nil {
		return true
	}
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
