//go:build race

package rundb_test

// racing reports whether the race detector is at work, which makes everything ten times slower.
const racing = true
