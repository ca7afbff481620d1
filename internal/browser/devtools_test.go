package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// devtools is a connection to a browser that was started for it: messages of
// JSON, each ended by a NUL byte, over two pipes.
type devtools struct {
	to      io.Writer
	mu      sync.Mutex
	next    int
	waiting map[int]chan answer
	err     error
	events  func(method string, params json.RawMessage)
}

type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct{ Message string }
}

// chromium returns the browser's path. There is no test without one.
func chromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	if own := os.Getenv("CHROMIUM"); own != "" {
		names = []string{own}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Chromium here: apt-get install -y --no-install-recommends chromium, or name one in CHROMIUM")
	return ""
}

// launch starts a browser that ends with the test.
func launch(t *testing.T) *devtools {
	t.Helper()
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, chromium(t), "--headless=new", "--remote-debugging-pipe", "--no-sandbox",
		"--disable-gpu",
		"--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--disable-background-networking",
		"--disable-component-update",
		"--disable-sync", "--mute-audio", "--hide-scrollbars", "--force-device-scale-factor=1",
		"--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{theirs, theirOut}
	var log bytes.Buffer
	cmd.Stderr = &log
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	theirOut.Close()
	d := &devtools{to: ours, waiting: map[int]chan answer{}, events: func(string, json.RawMessage) {}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.read(from)
	}()
	t.Cleanup(func() {
		_, _ = d.call(2*time.Second, "", "Browser.close", nil) // the process may be gone before it answers
		stop()
		_ = cmd.Wait() // it was killed, or ended as it was told
		ours.Close()
		<-done
		from.Close()
		if t.Failed() && d.err != io.EOF && d.err != nil {
			t.Logf("browser: %v\n%s", d.err, log.String())
		}
	})
	return d
}

// read hands answers to who waits for them, and events to d.events.
func (d *devtools) read(from io.Reader) {
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := r.ReadBytes(0)
		var a answer
		if err == nil {
			err = json.Unmarshal(line[:len(line)-1], &a)
		}
		d.mu.Lock()
		if err != nil {
			d.err = err
			for id, c := range d.waiting {
				close(c)
				delete(d.waiting, id)
			}
			d.mu.Unlock()
			return
		}
		c, events := d.waiting[a.ID], d.events
		delete(d.waiting, a.ID)
		d.mu.Unlock()
		switch {
		case c != nil:
			c <- a
		case a.Method != "":
			events(a.Method, a.Params)
		}
	}
}

// send asks without waiting for the answer.
func (d *devtools) send(session, method string, params any) (chan answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return nil, fmt.Errorf("call %s: browser has ended: %w", method, d.err)
	}
	d.next++
	msg := map[string]any{"id": d.next, "method": method}
	if params != nil {
		msg["params"] = params
	}
	if session != "" {
		msg["sessionId"] = session
	}
	data, err := json.Marshal(msg)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", method, err)
	}
	c := make(chan answer, 1)
	d.waiting[d.next] = c
	_, err = d.to.Write(append(data, 0))
	return c, err
}

// call asks and waits for the answer.
func (d *devtools) call(limit time.Duration, session, method string, params any) (json.RawMessage, error) {
	c, err := d.send(session, method, params)
	if err != nil {
		return nil, err
	}
	select {
	case a, ok := <-c:
		switch {
		case !ok:
			return nil, fmt.Errorf("call %s: browser has ended", method)
		case a.Error != nil:
			return nil, fmt.Errorf("call %s: %s", method, a.Error.Message)
		}
		return a.Result, nil
	case <-time.After(limit):
		return nil, fmt.Errorf("call %s: no answer within %v", method, limit)
	}
}
