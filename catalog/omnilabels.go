package catalog

import (
	"strconv"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

// vllm-omni puts the labels stage and replica in the place of the label engine of vLLM's families. Servers that do not
// do so yet number the replicas of all stages in their order, which numberStages undoes.

// numberStages gives the series of vLLM's families in the view of a vLLM-Omni server the stage and replica that their
// engine stands for, as far as edges and other stages tell how many replicas each stage has. Where they do not, each
// engine is a stage of its own, named after it.
func (p *Plan) numberStages(v *View) {
	if !isOmni(v) {
		return
	}
	at := v.engineStages() // of all engines, before any of them is renamed
	for name, gains := range v.byName {
		if !strings.HasPrefix(name, vllm) {
			continue
		}
		for i, g := range gains {
			engine, ok := g.Labels.Get("engine")
			if _, has := g.Labels.Get("stage"); !ok || has {
				continue
			}
			to, known := at[engine]
			if !known {
				to = [2]string{"engine" + engine, "0"}
			}
			gains[i] = p.rename(g, join(g.Labels.Without("engine"), metric.NewLabels(metric.Label{Name: "stage", Value: to[0]},
				metric.Label{Name: "replica", Value: to[1]})), 0)
		}
	}
}

// engineStages returns the stage and replica of each engine; empty when what the server shows of its stages does not
// agree with its engines.
func (v *View) engineStages() map[string][2]string {
	replicas, other := v.stageSizes()
	out := map[string][2]string{}
	engines := map[string]bool{}
	for name, gains := range v.byName {
		for _, g := range gains {
			if engine, ok := g.Labels.Get("engine"); ok && strings.HasPrefix(name, vllm) {
				engines[engine] = true
			}
		}
	}
	flat := 0
	for s := range len(replicas) {
		n := replicas[s]
		if n == 0 {
			return nil // a stage in between that nothing is known of
		}
		for r := range n {
			if engine := strconv.Itoa(flat); !other[s] {
				if !engines[engine] {
					return nil
				}
				out[engine] = [2]string{strconv.Itoa(s), strconv.Itoa(r)}
			}
			flat++
		}
	}
	if len(out) != len(engines) {
		return nil
	}
	return out
}

// maxStages bounds the numbers of stages and replicas that are believed.
const maxStages = 1024

// stageSizes returns how many replicas each stage has, by its number, and the stages that are no language models.
func (v *View) stageSizes() (replicas map[int]int, other map[int]bool) {
	replicas, other = map[int]int{}, map[int]bool{}
	see := func(l metric.Labels, stage, replica string) (s int, ok bool) {
		a, _ := l.Get(stage)
		b, _ := l.Get(replica)
		s, errS := strconv.Atoi(a)
		r, errR := strconv.Atoi(b)
		if errS != nil || errR != nil || s < 0 || r < 0 || s >= maxStages || r >= maxStages {
			return 0, false
		}
		replicas[s] = max(replicas[s], r+1)
		return s, true
	}
	for name, gains := range v.byName {
		if !strings.HasPrefix(name, omniPrefix) {
			continue
		}
		for _, g := range gains {
			if s, ok := see(g.Labels, "stage", "replica"); ok {
				other[s] = true
			}
			see(g.Labels, "from_stage", "from_replica")
			see(g.Labels, "to_stage", "to_replica")
		}
	}
	return replicas, other
}
