package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/scrapestat/scrapestat/summary"
)

// Options is what a view shows and where.
type Options struct {
	Board *Board
	// Status is asked for twice a second, Result when it is due (see the package comment), beside each other
	// but each of them one at a time. They must not wait for a poll. A nil Result shows targets only.
	Status func() Status
	Result func() (*summary.Run, error)
	// Quit is called at each q and ctrl+c, which is no signal while the view is
	// there. The view stays until its context is done.
	Quit func()

	In  io.Reader // a terminal, or nil for a view without keys
	Out io.Writer // the terminal

	Env           []string // of the terminal, as os.Environ; nil is that of the process
	Width, Height int      // of an Out that is no terminal
	Now           func() time.Time
}

// Run draws until ctx is done; the terminal is then as it was. It returns an error when it could not draw, or
// something in it was broken: the recording is not concerned.
func Run(ctx context.Context, o Options) error {
	options := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler(), tea.WithFPS(10),
		tea.WithWindowSize(o.Width, o.Height),
	}
	if o.Env != nil {
		// Marked as remote, it asks the terminal no questions: an answer that comes after the end would appear as typed.
		options = append(options, tea.WithEnvironment(append(o.Env, "SSH_TTY=yes")))
	}
	_, err := tea.NewProgram(newModel(o), options...).Run()
	if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) && !errors.Is(err, tea.ErrProgramPanic) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("draw live view: %w", err)
	}
	return nil
}
