// Package httpguard keeps the small HTTP servers of scrapestat safe: whom they answer, and how many at once.
package httpguard

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// MaxConnections is how many a server keeps.
const MaxConnections = 128

// connLimiter bounds the connections of a server: the oldest makes room for one more,
// so that many that say nothing, or say it slowly, keep nobody out.
type connLimiter struct {
	mu  sync.Mutex
	all []net.Conn // the oldest first
}

// changed is told of every connection that comes and goes.
func (c *connLimiter) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.all = append(c.all, conn)
		if len(c.all) > MaxConnections {
			_ = c.all[0].Close() // its own goroutine finds out
			c.all = slices.Delete(c.all, 0, 1)
		}
	case http.StateClosed, http.StateHijacked:
		if i := slices.Index(c.all, conn); i >= 0 {
			c.all = slices.Delete(c.all, i, i+1)
		}
	}
}

// Limit bounds what the connections of srv may take: their number, and the time for headers, bodies and answers, where
// write is the last.
func Limit(srv *http.Server, write time.Duration) {
	srv.ReadHeaderTimeout, srv.ReadTimeout, srv.WriteTimeout = 5*time.Second, 10*time.Second, write
	srv.IdleTimeout, srv.MaxHeaderBytes, srv.ConnState = time.Minute, 16<<10, new(connLimiter).changed
}

// Options says whom a handler answers.
type Options struct {
	Hosts     []string // names that requests may give besides addresses and localhost
	Printed   string   // who printed the address that is right
	BodyBytes int64    // of a request
	// OwnPolicy is a path whose answers have a Content-Security-Policy of their own; "" for none.
	OwnPolicy string
}

// Handler answers requests that name a host which nobody can point elsewhere, and refuses those that change something
// and come from a page of another site.
func Handler(next http.Handler, o Options) http.Handler {
	guarded := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !knownHost(r.Host, o.Hosts) {
			http.Error(w, "unknown host: use the address that "+o.Printed+" printed", http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if o.OwnPolicy == "" || r.URL.Path != o.OwnPolicy {
			w.Header().Set("Content-Security-Policy", "default-src 'none'")
		}
		w.Header().Set("X-Frame-Options", "DENY")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, o.BodyBytes)
		guarded.ServeHTTP(w, r)
	})
}

// knownHost reports whether a Host header is an address, localhost or one of names: a name of the attacker's, which a
// browser was led to resolve to us (DNS rebinding), is none of these.
func knownHost(header string, names []string) bool {
	host := header
	if h, _, err := net.SplitHostPort(header); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	return net.ParseIP(host) != nil || strings.EqualFold(host, "localhost") ||
		slices.ContainsFunc(names, func(name string) bool { return name != "" && strings.EqualFold(host, name) })
}
