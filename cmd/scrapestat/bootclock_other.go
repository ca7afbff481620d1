//go:build !linux

package main

import "errors"

// bootClock is only known on Linux.
func bootClock() (bootID string, offsetNS int64, err error) {
	return "", 0, errors.New("the time since boot is only known on Linux: use --anchor")
}
