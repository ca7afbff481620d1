package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
)

// endSignals are what asks a command to end: an interrupt, a SIGTERM, and a terminal
// that has gone, unless it was started to outlive one, as by nohup.
func endSignals() []os.Signal {
	out := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		out = append(out, syscall.SIGHUP)
	}
	return out
}

// surviveReaders makes a stdout or stderr whose reader has gone an error of a write for the rest of the process, where
// it would end it. The signal is caught and not ignored, as a COMMAND would inherit that.
func surviveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// interrupts turns signals into the two steps of an end: stop is called at the
// first, abort at the second. A terminal may tell of its end more than once: a
// SIGHUP is never the second. The returned function ends the watch and waits for it.
func interrupts(signals <-chan os.Signal, stop, abort func()) (end func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-quit:
				return
			case sig := <-signals:
				switch {
				case n == 0:
					stop()
				case sig != syscall.SIGHUP:
					abort()
					return
				}
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// talk is a writer that a failing stream costs its words and nothing else.
type talk struct {
	to  io.Writer
	err error // why it says nothing any more
}

// Write never fails.
func (t *talk) Write(b []byte) (int, error) {
	if t.err == nil {
		_, t.err = t.to.Write(b)
	}
	return len(b), nil
}

// tell says on say what became of the words.
func (t *talk) tell(say *progress) {
	if t.err != nil {
		say.logf("warning: print: %v", t.err)
	}
}
