//go:build !race

package main

// racing reports whether the race detector is at work, which takes memory of its own.
const racing = false
