package atomicfile_test

import "testing"

// TestCatalogue runs cases of the fault catalogue (package faults) by their id.
func TestCatalogue(t *testing.T) {
	t.Run("D10 a sync fails", TestSyncFails)
}
