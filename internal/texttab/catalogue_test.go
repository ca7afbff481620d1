package texttab_test

import "testing"

// TestCatalogue runs cases of the fault catalogue (package faults) by their id.
func TestCatalogue(t *testing.T) {
	t.Run("X01 control characters", TestEscape)
}
