//go:build !linux

package rundb

import (
	"errors"
	"time"
)

// errBootClock is why a machine does not tell its boot.
var errBootClock = errors.New("the time since boot is only known on Linux")

// ReadHostClock reads the clocks of this machine. UnixNS is told also with an error.
func ReadHostClock() (HostClock, error) {
	return HostClock{UnixNS: time.Now().UnixNano()}, errBootClock
}
