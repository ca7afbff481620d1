package events_test

import "testing"

// TestCatalogue runs cases of the fault catalogue (package faults) by their id.
func TestCatalogue(t *testing.T) {
	t.Run("E10 vllm bench", TestVLLM)
	t.Run("E10 aiperf", TestAIPerf)
	t.Run("E10 guidellm", TestGuideLLM)
	t.Run("E10 refused", TestOpenRefuses)
}
