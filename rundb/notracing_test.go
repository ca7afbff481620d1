//go:build !race

package rundb_test

// racing reports whether the race detector is at work.
const racing = false
