//go:build !unix

package scrape

// checkFileLimit has no limit to check on this system.
func checkFileLimit(int) error { return nil }
