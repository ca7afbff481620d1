package compare_test

import "testing"

// TestCatalogue runs cases of the fault catalogue (package faults) by their id.
func TestCatalogue(t *testing.T) {
	t.Run("E06 other versions and layouts", TestReasons)
	t.Run("E06 differences", TestDifferences)
	t.Run("E07 hardly any data", TestVerdicts)
}
