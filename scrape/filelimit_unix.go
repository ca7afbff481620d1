//go:build unix

package scrape

import (
	"fmt"
	"syscall"
)

// checkFileLimit refuses more targets than the process may have connections.
// The Go runtime has raised the soft limit to the hard one already.
func checkFileLimit(targets int) error {
	const others = 32 // the recording, its log, terminal, listeners
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil // then there is no limit to check against
	}
	if need := uint64(targets) + others; uint64(limit.Cur) < need {
		return fmt.Errorf("make collector: %d targets need %d open files, the limit is %d; raise it with ulimit -n %d",
			targets, need, limit.Cur, need)
	}
	return nil
}
