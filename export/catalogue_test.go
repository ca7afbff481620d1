package export_test

import "testing"

// TestCatalogue runs cases of the fault catalogue (package faults) by their id.
func TestCatalogue(t *testing.T) {
	t.Run("E02 streams", TestParquetStream)
	t.Run("E02 millions of rows", TestParquetMemory)
	t.Run("E03 formats agree", TestCSVAgreesWithJSON)
	t.Run("E04 cells", TestCSVCells)
}
