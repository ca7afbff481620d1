package html_test

import "testing"

// TestCatalogue runs cases of the fault catalogue (package faults) by their id.
func TestCatalogue(t *testing.T) {
	t.Run("X03 offline", TestPolicy)
	t.Run("X03 hostile text", TestHostileTextStaysText)
}
