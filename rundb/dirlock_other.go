//go:build !unix

package rundb

// lockDir does nothing where there are no file locks of this kind: there a
// second collector is refused by the open recording itself.
func lockDir(string) (unlock func() error, err error) { return func() error { return nil }, nil }

// heldDir is nothing where a file that is open cannot be removed.
type heldDir struct{}

func holdDir(string, bool) (heldDir, error) { return heldDir{}, nil }

func (heldDir) renewed(string) (heldDir, error) { return heldDir{}, nil }

func (heldDir) lock(bool) error { return nil }
func (heldDir) unlock()         {}
func (heldDir) release()        {}
