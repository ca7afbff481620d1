package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/summary"
)

// The limits and measures of a pipeline's picture, in its own units.
const (
	maxPipelines = 8
	maxStages    = 12
	boxWidth     = 196.0
	boxHeight    = 112.0
	hopWidth     = 150.0
	pictureTop   = 34.0
)

// pipeline is the stages of a vLLM-Omni server and the ways between them, with where they are in a picture.
type pipeline struct {
	Title, Spoken string
	Facts         []fact
	Width, Height float64
	Stages        []stage
	Hops          []hop
	Left          int // stages that are not drawn
}

type stage struct {
	X, Y                    float64
	Name, Time, Share, Note string
	Fill                    float64 // width of the bar of its share
	Busiest                 bool
}

type hop struct {
	Path       string
	X, Y       float64 // of the text
	Time, Size string
	depth      float64 // how far down it goes
}

// pipelines draws each server of several stages.
func (p *page) pipelines() {
	for run, in := range p.ins {
		for e := range in.Run.Endpoints {
			o := omni{}
			for i := range in.Run.Derived {
				if d := &in.Run.Derived[i]; d.Endpoint == e && d.Pack == catalog.OmniPack {
					o.DerivedList = append(o.DerivedList, d)
				}
			}
			if len(o.Values("stage_time_mean", "stage")) == 0 || len(p.Pipelines) == maxPipelines {
				continue
			}
			v := o.pipeline()
			v.Title = strings.Trim(p.runName(run)+" · "+endpointLabel(in.Run, e), " ·")
			v.Spoken = v.Title + ": " + v.Spoken
			p.Pipelines = append(p.Pipelines, v)
		}
	}
}

// omni is the quantities of a pipeline.
type omni struct{ summary.DerivedList }

// get returns a quantity that has a value, else nil.
func (o omni) get(name string, labels ...string) *summary.Derived {
	if d := o.Get(name, labels...); d != nil && d.Status.Defined() {
		return d
	}
	return nil
}

func (o omni) text(name string, labels ...string) string {
	if d := o.get(name, labels...); d != nil {
		return derivedText(d)
	}
	return "–"
}

func (o omni) pipeline() pipeline {
	v := pipeline{Height: pictureTop + boxHeight + 12}
	names := o.Values("stage_time_mean", "stage")
	v.Left = max(len(names)-maxStages, 0)
	names = names[:len(names)-v.Left]
	busiest := o.Values("bottleneck_stage", "stage")
	var spoken []string
	for i, name := range names {
		s := stage{X: float64(i) * (boxWidth + hopWidth), Y: pictureTop, Name: "stage " + clip(name, 18),
			Time: o.text("stage_time_mean", "stage", name), Share: o.text("stage_share_of_e2e", "stage", name) +
				" of end to end",
			Note:    "queue " + o.text("stage_queue_mean", "stage", name),
			Busiest: slices.Contains(busiest, name)}
		if d := o.get("stage_share_of_e2e", "stage", name); d != nil {
			s.Fill = (boxWidth - 24) * min(max(d.Shown, 0), 1)
		}
		if d := o.get("stage_utilization", "stage", name); d != nil {
			s.Note += " · " + plain(d.Shown) + " inside"
		}
		v.Stages = append(v.Stages, s)
		spoken = append(spoken, s.Name+" "+s.Time)
		v.Width = s.X + boxWidth
	}
	for _, d := range o.DerivedList {
		from, _ := d.Labels.Get("from_stage")
		to, _ := d.Labels.Get("to_stage")
		a, b := slices.Index(names, from), slices.Index(names, to)
		if d.Name != "edge_hop_mean" || a < 0 || b < 0 || a == b {
			continue
		}
		h := o.hop(a, b, from, to)
		h.Time = derivedText(d)
		v.Hops = append(v.Hops, h)
		v.Height = max(v.Height, h.depth)
		spoken = append(spoken, fmt.Sprintf("from %s to %s %s", clip(from, 18), clip(to, 18), h.Time))
	}
	v.Spoken = strings.Join(spoken, "; ")
	for _, f := range []struct{ name, of string }{{"End to end", "omni_e2e_mean"},
		{"Waiting for admission", "omni_queue_mean"}, {"In all stages", "omni_stages_mean"},
		{"On all hops", "omni_hops_mean"}, {"Outside the stages", "omni_slack_mean"},
		{"Overlap of stages", "omni_overlap_mean"}, {"Explained by nothing", "omni_residual_mean"}} {
		if d := o.get(f.of); d != nil {
			v.Facts = append(v.Facts, fact{Name: f.name, Value: derivedText(d)})
		}
	}
	return v
}

// hop is the way from one stage to another: an arrow to the next one, an arc below the boxes to any other.
func (o omni) hop(a, b int, from, to string) hop {
	x0, x1 := float64(a)*(boxWidth+hopWidth)+boxWidth, float64(b)*(boxWidth+hopWidth)
	y := pictureTop + boxHeight/2
	h := hop{Size: o.text("edge_chunks_per_request", "from_stage", from, "to_stage", to) + " × " +
		o.text("edge_chunk_bytes", "from_stage", from, "to_stage", to)}
	if b == a+1 {
		h.Path = fmt.Sprintf("M%.0f %.0fH%.0f", x0+6, y, x1-12)
		h.X, h.Y = (x0+x1)/2, y
		return h
	}
	down := pictureTop + boxHeight
	depth := down + 44 + 10*float64(max(b-a, a-b))
	h.Path = fmt.Sprintf("M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f", x0-boxWidth/2, down+4, x0-boxWidth/2, depth,
		x1+boxWidth/2, depth, x1+boxWidth/2, down+10)
	h.X, h.Y, h.depth = (x0+x1)/2, depth-14, depth+14
	return h
}
