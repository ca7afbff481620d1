package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/internal/httpguard"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
)

// listenAddress reads --listen: HOST:PORT, or a port alone, which is on loopback.
func listenAddress(text string) (string, error) {
	if !strings.Contains(text, ":") {
		text = ":" + text
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || port == "" {
		return "", usagef("--listen %q: want a port or HOST:PORT", text)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", usagef("--listen %q: %q is no port", text, port)
	}
	host = cmp.Or(host, "127.0.0.1")
	return net.JoinHostPort(host, port), nil
}

// listener serves the state of a run over HTTP.
type listener struct {
	srv  *http.Server
	done chan struct{}
	err  error // why it ended too early; read after done

	session *collect.Session
	self    *selfMetrics
	page    *livePage
}

// listen starts the server of --listen, if there is to be one. It ends with the run.
func (c *console) listen(o *collectOptions, s *collect.Session, page *livePage) error {
	if page == nil {
		return nil
	}
	page.begin(s)
	address, err := listenAddress(o.listen)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return usagef("--listen: %w", err)
	}
	host, _, _ := net.SplitHostPort(address) // it was made by JoinHostPort
	l := &listener{done: make(chan struct{}), session: s, self: c.self, page: page}
	l.srv = &http.Server{
		Handler:  l.routes(host),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // what clients do is no news
	}
	httpguard.Limit(l.srv, 30*time.Second)
	s.AtEnd(func(context.Context) []metric.Warning { return l.stop() })
	c.say.logf("listening on http://%s", ln.Addr())
	go func() {
		defer close(l.done)
		if err := l.srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			l.err = err
		}
	}()
	return nil
}

// stop ends the server; requests that run get half a second. It returns what is to be said about it.
func (l *listener) stop() []metric.Warning {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if l.srv.Shutdown(ctx) != nil {
		_ = l.srv.Close() // drops the connections; the run is over
	}
	<-l.done
	if l.err != nil {
		return []metric.Warning{{Code: "listen_ended", Text: "--listen ended before the run: " + l.err.Error()}}
	}
	return nil
}

// routes are the pages. Requests must name a host that nobody can point elsewhere, and what changes the run must not
// come from a page of another site.
func (l *listener) routes(host string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", l.self.handler())
	mux.HandleFunc("GET /{$}", l.livePage)
	mux.HandleFunc("GET /status", l.status)
	mux.HandleFunc("POST /mark", l.postMark)
	return httpguard.Handler(mux, httpguard.Options{Hosts: []string{host, rundb.ThisHost().Hostname}, Printed: "collect",
		BodyBytes: 16 << 10, OwnPolicy: "/"}) // that page has a policy of its own, by hashes
}

// livePage is the report of the run so far, which asks for a newer one by itself.
func (l *listener) livePage(w http.ResponseWriter, _ *http.Request) {
	page, err := l.page.report()
	if err != nil {
		http.Error(w, "the analysis has ended: "+err.Error()+"\nthe recording goes on; see /status",
			http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page) // the reader may have gone
}

// status is a plain page for a person.
func (l *listener) status(w http.ResponseWriter, _ *http.Request) {
	t, m := l.session.Totals(), l.session.Manifest()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "scrapestat %s\nrun %s\nrecording since %s\nscrapes %d (%d failed or skipped)\nsamples %d (%d "+
		"lines dropped)\n",
		toolVersion(), m.RunID, l.session.Origin().UTC().Format(time.RFC3339), t.Polls, t.Failed, t.Lines, t.Dropped)
	for _, target := range m.Targets {
		fmt.Fprintf(w, "target %s %q\n", target.URL, target.Name)
	}
	fmt.Fprintln(w, "\nGET  /                the report so far\nGET  /metrics         of the collector itself\n"+
		"POST /mark?name=NAME  starts a phase; the name end ends the run")
}

// postMark sets a mark, by the rules of the command mark.
func (l *listener) postMark(w http.ResponseWriter, r *http.Request) {
	name, when := r.FormValue("name"), l.session.Now()
	if at := r.FormValue("at"); at != "" {
		t, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			http.Error(w, "at: want a time such as 2026-11-21T10:00:00.5Z", http.StatusBadRequest)
			return
		}
		when = t.UnixNano()
	}
	var refused *collect.OptionError
	switch err := l.session.MarkAt(name, when); {
	case errors.As(err, &refused):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, rundb.ErrTooManyMarks):
		http.Error(w, err.Error(), http.StatusTooManyRequests)
	case err != nil:
		http.Error(w, "the recording does not take marks any more", http.StatusServiceUnavailable)
	default:
		fmt.Fprintf(w, "phase %q from %s\n", name, time.Unix(0, when).UTC().Format(time.RFC3339Nano))
	}
}
