//go:build unix

package rundb

import "path/filepath"

// EventLockName is a file beside run.db whose lock is held while somebody records
// events into it.
const EventLockName = "events.lock"

// fileLocks is set where lockEvents excludes other writers of this machine.
const fileLocks = true

// lockEvents takes the lock; unlock drops it and removes the file.
func lockEvents(dir string) (unlock func() error, err error) {
	return lockFile(filepath.Join(dir, EventLockName), ErrEventWriter)
}
