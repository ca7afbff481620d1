package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const newestGeneration = 4

// parseGeneration reads Options.Generation.
func parseGeneration(s string) (int, error) {
	if s == "" {
		return newestGeneration, nil
	}
	g := slices.Index([]string{"g0", "g1", "g2", "g3", "g4"}, s)
	if g < 0 {
		return 0, fmt.Errorf("check options: Generation is %q, want g0, g1, g2, g3 or g4", s)
	}
	return g, nil
}

// newOmniPanel makes the series of the pipeline, named as a generation of vLLM-Omni names them. Without --log-stats the
// families are declared and the panel is nil.
func newOmniPanel(w *world, gen int) *panel {
	labels, values := []string{"model_name"}, []string{w.opt.Model}
	if gen == 0 {
		labels, values = append(labels, "engine"), append(values, "0")
	}
	t := w.table("omni", variant{labels: map[string][]string{"": labels}, name: func(d *declaration) (string, float64) {
		return omniName(d, gen)
	}})
	if !w.opt.logStats() {
		return nil
	}
	return t.panel("", values...)
}

// omniName is the name of a family in a generation, "" when there is none, and its scale: those that end in _ms are in
// milliseconds. The first generation has stage_id and replica_id for the labels stage and replica.
func omniName(d *declaration, gen int) (string, float64) {
	prefix := "vllm_omni:"
	if gen < 3 {
		prefix = "vllm:omni_"
	}
	if gen == 0 {
		for i, l := range d.labels {
			if l == "stage" || l == "replica" {
				d.labels[i] += "_id"
			}
		}
	}
	old, now := d.words["old"], strconv.Itoa(gen)
	switch {
	case d.words["since"] <= now:
		return prefix + d.name, 1
	case old == "" || now != cmp.Or(d.words["at"], "0"):
		return "", 1
	case strings.HasSuffix(old, "_ms"):
		return prefix + old, 1000
	}
	return prefix + old, 1
}
