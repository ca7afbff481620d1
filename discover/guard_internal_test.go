package discover

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestDialGuard dials addresses as a name may resolve to them: what a discovered
// name must not lead to is refused before a packet is sent.
func TestDialGuard(t *testing.T) {
	check := func(address string, guarded, refused bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		conn, err := reach{guarded: guarded}.dialer(time.Second)(ctx, "tcp", address)
		if err == nil {
			conn.Close()
		}
		if got := err != nil && strings.Contains(err.Error(), "name it in static_configs"); got != refused {
			t.Errorf("%s, guarded %v: got error %v", address, guarded, err)
		}
	}
	for _, address := range []string{"169.254.169.254:80", "169.254.1.1:80", "[fe80::1%lo]:80",
		"[::ffff:169.254.169.254]:80", "100.100.100.200:80", "[fd00:ec2::254]:80", "224.0.0.1:80"} {
		check(address, true, true)
		check(address, false, false)
	}
	check("127.0.0.1:1", true, false)
	check("[::1]:1", true, false)
}
