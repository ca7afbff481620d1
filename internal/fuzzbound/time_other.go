//go:build !unix

package fuzzbound

import "time"

// processorTime is the time that has passed: there is no better one here.
func processorTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
