package main

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// TestExplainPair plants a change between two runs and asks what their means differ in: differences add up, and the
// part that changed most is the one that was planted.
func TestExplainPair(t *testing.T) {
	tmp := t.TempDir()
	record := func(name, server string) string {
		t.Helper()
		var talk bytes.Buffer
		dir := filepath.Join(tmp, name)
		if code := run(t.Context(), []string{"simulate", server, "--record", dir, "--warmup", "20s", "--duration", "120s",
			"--seed", "7", "--interval", "1s"}, stdio{nil, &talk, &talk}); code != 0 {
			t.Fatal(talk.String())
		}
		return dir
	}
	base := record("base", "vllm,rate=14")
	for _, c := range []struct{ change, server, largest, also string }{
		{"slower steps", "vllm,rate=14,step=12ms", "decode_base", "decode_prefill"},
		{"no cache of prefixes", "vllm,rate=14,prefix=-1,prompt=900", "decode_prefill", "prefill"},
		{"few places", "vllm,rate=14,slots=12", "queue_slots", "queue_slots"},
		{"little memory", "vllm,rate=14,blocks=520", "queue_kv", "queue_kv"},
	} {
		other := record(strings.ReplaceAll(c.change, " ", "-"), c.server)
		var got struct {
			Load  []string `json:"load_differs"`
			Pairs []struct {
				Difference float64 `json:"difference_s"`
				Rows       []struct {
					ID         string
					Difference float64 `json:"difference_s"`
				}
			}
		}
		if err := json.Unmarshal(output(t, "explain", base, other, "--format", "json"), &got); err != nil {
			t.Fatal(err)
		}
		sum, most, more := 0.0, "", map[string]float64{}
		for _, r := range got.Pairs[0].Rows {
			sum, more[r.ID] = sum+r.Difference, r.Difference
			if most == "" || r.Difference > more[most] {
				most = r.ID
			}
		}
		if math.Abs(sum-got.Pairs[0].Difference) > 1e-9 || !(got.Pairs[0].Difference > 0) || !(more[c.also] > 0) {
			t.Errorf("%s: rows add up to %v of %v; %v", c.change, sum, got.Pairs[0].Difference, more)
		}
		if most != c.largest && !(most == "decode" && strings.HasPrefix(c.largest, "decode")) {
			t.Errorf("%s: the largest is %s, %v", c.change, most, more)
		}
		text := string(output(t, "explain", base, other))
		want := "are decode"
		if strings.HasPrefix(c.largest, "queue") {
			want = "are " + c.largest
		}
		if !strings.Contains(text, want) || strings.Contains(text, "! the load") != (len(got.Load) > 0) {
			t.Errorf("%s: want %q in\n%s", c.change, want, text)
		}
	}
}
