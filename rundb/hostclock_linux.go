package rundb

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ReadHostClock reads the clocks of this machine. UnixNS is told also with an error.
func ReadHostClock() (HostClock, error) {
	c := HostClock{UnixNS: time.Now().UnixNano()}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return c, err
	}
	var mono unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono); err != nil {
		return c, err
	}
	c.BootID, c.MonoNS, c.UnixNS = strings.TrimSpace(string(id)), mono.Nano(), time.Now().UnixNano()
	return c, nil
}
