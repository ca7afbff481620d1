package discover

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

// TestHardening has findings of what must not leak, by the numbers that package
// faults lists.
func TestHardening(t *testing.T) { t.Run("K22", metadata) }

// metadata has the metadata services that are not of the link, in all their forms,
// and addresses beside them that are free.
func metadata(t *testing.T) {
	for _, a := range []string{"168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254",
		"fd00:c1::a9fe:a9fe", "fd00:42::42", "::ffff:168.63.129.16", "::ffff:192.0.0.192", "64:ff9b::169.254.169.254",
		"64:ff9b::a83f:8110", "64:ff9b:1::c000:c0", "2002:a9fe:a9fe::1", "2002:a83f:8110::", "::192.0.0.192",
		"::ffff:a83f:8110", "fd00:ec2::254%lo"} {
		if guard(net.JoinHostPort(a, "80")) == nil {
			t.Errorf("%s is free", a)
		}
	}
	for _, a := range []string{"168.63.129.17", "192.0.0.193", "::1", "127.0.0.1", "fd00:ec2::255", "2002:a00:1::1",
		"64:ff9b::8.8.8.8", "::ffff:10.0.0.1"} {
		if err := guard(net.JoinHostPort(a, "80")); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}

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
