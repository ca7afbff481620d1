package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
)

// serveTargets is the child process that answers as many targets: /t/i/metrics has the next recorded body at each
// request, /hole/ never answers, /sink swallows remote writes, and /count tells how many bodies were asked for.
func serveTargets(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("serve-targets", flag.ContinueOnError)
	targets := f.Int("n", 1, "targets")
	extra := f.Int("extra", 0, "extra series")
	if err := f.Parse(args); err != nil {
		return err
	}
	src, err := newSource(1, *extra)
	if err != nil {
		return err
	}
	var bodies [256][]byte
	for i := range bodies {
		bodies[i] = src.body(interval)
	}
	count, came := atomic.Int64{}, make([]atomic.Int64, *targets)
	mux := http.NewServeMux()
	mux.HandleFunc("/t/{target}/metrics", func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(r.PathValue("target"))
		if err != nil || i < 0 || i >= len(came) {
			http.NotFound(w, r)
			return
		}
		count.Add(1)
		body := bodies[(int(came[i].Add(1))+7*i)%len(bodies)]
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	})
	mux.HandleFunc("/hole/", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/sink", func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	mux.HandleFunc("/count", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, count.Load()) })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintln(out, ln.Addr(), src.server.Samples(), len(bodies[0]))
	srv := &http.Server{Handler: mux}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	return srv.Serve(ln)
}

// fleet is the process of the targets as the harness sees it.
type fleet struct {
	*process
	addr           string
	urls           []string
	samples, bytes int
}

func (b *bench) startFleet(ctx context.Context, targets, extra int) (*fleet, error) {
	p, line, err := startSelf(ctx, targetsCPU, "serve-targets", "-n", strconv.Itoa(targets), "-extra", strconv.Itoa(extra))
	if err != nil {
		return nil, err
	}
	f := &fleet{process: p}
	if _, err := fmt.Sscan(line, &f.addr, &f.samples, &f.bytes); err != nil {
		p.kill()
		return nil, fmt.Errorf("start targets: %w", err)
	}
	for i := range targets {
		f.urls = append(f.urls, fmt.Sprintf("http://%s/t/%d/metrics", f.addr, i))
	}
	b.say("load: %d targets of %d samples, %d bytes", targets, f.samples, f.bytes)
	return f, nil
}

// count returns how many bodies were asked for.
func (f *fleet) count() (n int, err error) {
	resp, err := http.Get("http://" + f.addr + "/count")
	if err != nil {
		return 0, fmt.Errorf("ask targets: %w", err)
	}
	defer resp.Body.Close()
	_, err = fmt.Fscan(resp.Body, &n)
	return n, err
}
