package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// The codes of a command that did not run, as of a shell.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// CommandError is why a command could not be started, with the exit code that a
// shell has for it.
type CommandError struct {
	Code int
	Err  error
}

// Error is the text of the cause.
func (e *CommandError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *CommandError) Unwrap() error { return e.Err }

// CommandOptions is what surrounds a command.
type CommandOptions struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal is set when In is a terminal: then the command shares our process
	// group, as a group of its own could not read it. The terminal's own signals
	// reach both.
	Terminal bool
	Grace    time.Duration // to end after a signal; 0 is 10 s
}

// Command is the load generator that a run wraps. The run ends when it does.
type Command struct {
	*exec.Cmd               // to change before Run starts it
	Code      int           // as of a shell, valid after the run
	Failure   error         // why it could not be run, valid after the run
	Stopped   bool          // the run ended it: its code is not its verdict
	done      chan struct{} // closed when it has ended
	grace     time.Duration
}

// NewCommand finds a command without starting it, so that a misspelt one fails
// before anything is recorded.
func NewCommand(argv []string, o CommandOptions) (*Command, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		code := codeNotFound
		if errors.Is(err, os.ErrPermission) {
			code = codeNotExecutable
		}
		return nil, &CommandError{code, fmt.Errorf("find command %q: %w", argv[0], err)}
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = o.In, o.Out, o.Err
	// A grandchild that keeps our pipes open must not hold up the end of the run.
	cmd.WaitDelay = 2 * time.Second
	if !o.Terminal {
		ownProcessGroup(cmd)
	}
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	return &Command{Cmd: cmd, done: make(chan struct{}), grace: o.Grace}, nil
}

// Done is closed when the command has ended. It may be called on nil.
func (c *Command) Done() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.done
}

// start runs the command and watches it. Cancelling ctx kills its whole
// process group. The caller must receive from c.done afterwards.
func (c *Command) start(ctx context.Context) error {
	if err := c.Start(); err != nil {
		return &CommandError{codeNotExecutable, fmt.Errorf("start command %q: %w", c.Args[0], err)}
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			killGroup(c.Cmd)
		case <-ended:
		}
	}()
	go func() {
		defer close(c.done)
		defer close(ended)
		err := c.Wait()
		if errors.Is(err, exec.ErrWaitDelay) {
			// It ended well, and left somebody behind who kept our pipes.
			killRest(c.Cmd)
			err = nil
		}
		c.Code, c.Failure = exitCode(err)
	}()
	return nil
}

// stop passes a signal on to the process group and, if the command has not
// ended when its grace is over, kills the group. What is left of the group when
// the command has ended is killed too: nobody else would end it.
func (c *Command) stop(sig os.Signal) {
	c.Stopped = true
	signalGroup(c.Cmd, sig)
	timer := time.NewTimer(c.grace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		killGroup(c.Cmd)
		<-c.done
	}
	killRest(c.Cmd)
}

// exitCode translates what Wait returned: the command's code, 128+n when signal
// n ended it, as a shell reports it.
func exitCode(err error) (int, error) {
	if err == nil {
		return 0, nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 1, fmt.Errorf("wait for command: %w", err)
	}
	if sig, ok := killedBy(exit); ok {
		return 128 + sig, nil
	}
	return exit.ExitCode(), nil
}

// ended reports whether the command is over or was never started.
func (c *Command) ended() bool {
	if c.Process == nil {
		return true
	}
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
