//go:build !unix

package rundb

// EventLockName is the lock file where there are file locks of this kind.
const EventLockName = "events.lock"

// lockEvents does nothing here: the lock row alone keeps a second writer out.
func lockEvents(string) (unlock func() error, err error) { return func() error { return nil }, nil }

// fileLocks is set where lockEvents excludes other writers of this machine.
const fileLocks = false
