package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// bootClock returns this boot's id and Unix minus monotonic time, exact to the 10 ms that /proc/uptime tells.
func bootClock() (bootID string, offsetNS int64, err error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, err
	}
	up, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return "", 0, err
	}
	text, _, _ := strings.Cut(string(up), " ")
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "", 0, fmt.Errorf("read /proc/uptime: %w", err)
	}
	return strings.TrimSpace(string(id)), time.Now().UnixNano() - int64(seconds*1e9), nil
}
