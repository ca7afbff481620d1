package rundb_test

import "testing"

// TestCatalogue runs cases of the fault catalogue (package faults) by their id.
func TestCatalogue(t *testing.T) {
	t.Run("E09 events.db", TestForeignEvents)
	t.Run("E09 refused", TestForeignEventsRefuses)
	t.Run("E09 read only", TestForeignEventsReadOnly)
}
