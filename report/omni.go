package report

import (
	"math"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/summary"
	"github.com/scrapestat/scrapestat/units"
)

// omniView finds the quantities of a vLLM-Omni pipeline by name and labels.
type omniView struct {
	engine string
	summary.DerivedList
}

// omniTables tell where the time of a pipeline went: stages, the split of the end-to-end time as a bar, edges, and the
// goals of audio.
func omniTables(e *engine) []*table {
	o := omniView{engine: e.title}
	for i := range e.fleet {
		if e.fleet[i].Pack == catalog.OmniPack {
			o.DerivedList = append(o.DerivedList, &e.fleet[i])
		}
	}
	return []*table{o.stages(), o.edges(), o.audio()}
}

// cell is a quantity in a table; a dash where there is no number.
func (o *omniView) cell(name string, labels ...string) cell {
	return derivedOrDash(o.Get(name, labels...))
}

func derivedOrDash(d *summary.Derived) cell {
	if d == nil {
		return cell{Text: "-"}
	}
	return derivedCell(d)
}

// bare is a quantity whose unit the head of the column has.
func (o *omniView) bare(name string, labels ...string) cell {
	d := o.Get(name, labels...)
	if d == nil || !d.Status.Defined() {
		return cell{Text: "-"}
	}
	return in(d.Shown, true, "")
}

// stages is a row for each stage, with the split of the end-to-end time below.
func (o *omniView) stages() *table {
	tab := newTable("omni_stages", "stages", hidden("engine"), words("stage", "STAGE"), number("requests_per_s", "REQ/S"),
		number("time_mean_s", "TIME"), number("queue_mean_s", "OF IT QUEUE"), number("share_of_e2e", "OF E2E"),
		spare(number("output_tok_s", "TOK/S"), 1), spare(number("replicas", "REPLICAS"), 2),
		number("in_each_replica", "IN EACH"), spare(number("skew", "SKEW"), 3), words("note", "NOTE"))
	for _, s := range o.Values("stage_time_mean", "stage") {
		at := []string{"stage", s}
		tab.row(raw(o.engine), str(s), o.bare("stage_request_rate", at...), o.cell("stage_time_mean", at...),
			o.cell("stage_queue_mean", at...), o.cell("stage_share_of_e2e", at...), o.bare("stage_output_tok_s", at...),
			o.bare("stage_replicas", at...), o.bare("stage_utilization", at...),
			o.cell("replica_skew", "of", "requests", "stage", s), opt(o.stageNote(s)))
	}
	if len(tab.Rows) > 0 {
		tab.notes = o.split()
	}
	return tab
}

// stageNote says what is special about a stage.
func (o *omniView) stageNote(stage string) string {
	var words []string
	if o.Get("bottleneck_stage", "stage", stage) != nil {
		words = append(words, "bottleneck")
	}
	switch d := o.Get("stage_time_mean", "stage", stage); {
	case d == nil:
	case !d.Status.Defined():
		words = append(words, "no family has its time")
	default:
		if note := derivedNote(d); note != "" {
			words = append(words, note)
		}
	}
	return strings.Join(words, ", ")
}

// piece is a part of the end-to-end time in the bar.
type piece struct {
	mark, name string
	seconds    float64
}

// split tells the end-to-end time as a bar of its parts, and as numbers.
func (o *omniView) split() []string {
	e2e := o.Get("omni_e2e_mean")
	if e2e == nil || !e2e.Status.Defined() {
		return nil
	}
	var pieces []piece
	add := func(mark, name string, d *summary.Derived) {
		if d != nil && d.Status.Defined() {
			pieces = append(pieces, piece{mark, name, d.Shown})
		}
	}
	add("q", "queue (q)", o.Get("omni_queue_mean"))
	for _, s := range o.Values("stage_time_mean", "stage") {
		add(s[len(s)-1:], "stage "+s, o.Get("stage_time_mean", "stage", s))
	}
	add("h", "hops (h)", o.Get("omni_hops_mean"))
	residual := o.Get("omni_residual_mean")
	overlap := o.Get("omni_overlap_mean")
	overlapped := overlap != nil && overlap.Status.Defined() && overlap.Value > 0
	if !overlapped {
		add("r", "rest (r)", residual)
	}
	var parts []string
	sum := 0.0
	for _, p := range pieces {
		parts = append(parts, p.name+" "+units.Format(p.seconds, "seconds"))
		sum += p.seconds
	}
	line := "E2E " + units.Format(e2e.Value, "seconds") + " = " + strings.Join(parts, " + ")
	if overlapped {
		line += " - " + units.Format(sum-e2e.Value, "seconds") + " that overlap"
	}
	if residual != nil && slices.Contains(residual.Flags, "stage_time_missing") {
		line += " (the rest holds the stages without a time)"
	}
	return []string{"[" + bar(pieces) + "]", line}
}

// barWidth is the width of the bar in characters.
const barWidth = 60

// bar draws pieces in proportion; one that is there has at least a character.
func bar(pieces []piece) string {
	total := 0.0
	for _, p := range pieces {
		total += p.seconds
	}
	var b strings.Builder
	for _, p := range pieces {
		if p.seconds > 0 {
			b.WriteString(strings.Repeat(p.mark, max(1, int(math.Round(barWidth*p.seconds/total)))))
		}
	}
	return b.String()
}

// edges is a row for each pair of stages that send to each other.
func (o *omniView) edges() *table {
	tab := newTable("omni_edges", "edges", hidden("engine"), words("from_stage", "FROM"), words("to_stage", "TO"),
		number("hop_mean_s", "HOP"), number("share_of_e2e", "OF E2E"), spare(number("chunks_per_request", "CHUNKS/REQ"), 4),
		spare(number("chunk_bytes", "CHUNK"), 3), number("tx_mean_s", "TX"), number("in_flight_mean_s", "IN FLIGHT"),
		number("rx_mean_s", "RX"), spare(number("bytes_per_s", "LOAD"), 2),
		number("bandwidth", "BANDWIDTH"), words("note", "NOTE"))
	for _, d := range o.DerivedList {
		if d.Name != "edge_hop_mean" {
			continue
		}
		from, _ := d.Labels.Get("from_stage")
		to, _ := d.Labels.Get("to_stage")
		at := []string{"from_stage", from, "to_stage", to}
		tab.row(raw(o.engine), str(from), str(to), derivedCell(d), o.cell("edge_share_of_e2e", at...),
			o.bare("edge_chunks_per_request", at...), o.cell("edge_chunk_bytes", at...), o.cell("edge_tx_mean", at...),
			o.cell("edge_in_flight_mean", at...), o.cell("edge_rx_mean", at...), o.cell("edge_throughput", at...),
			o.cell("edge_bandwidth", at...), opt(derivedNote(d)))
	}
	return tab
}

// goal is a line of the table of audio goals: a quantity of a stage, and the value of the label that tells its goals
// apart.
type goal struct{ name, label, value, says string }

var audioGoals = [...]goal{
	{"rtf_slo_attainment", "slo", "1", "made in real time (RTF <= 1)"},
	{"ttfp_slo", "slo", "1", "first packet within 1 s"},
	{"continuity_ok_ratio", "threshold_ms", "100", "gaps of at most 100 ms"},
}

// audio is a row for each goal that a stage with sound may have.
func (o *omniView) audio() *table {
	tab := newTable("omni_audio", "audio", hidden("engine"), words("stage", "STAGE"), words("goal", "GOAL"),
		number("share", "MET BY"), words("status", "NOTE"))
	add := func(stage, says string, d *summary.Derived) {
		if d != nil {
			tab.row(raw(o.engine), str(stage), str(says), derivedCell(d), both(derivedNote(d), d.Status.String()))
		}
	}
	for _, stage := range o.Values("audio_mean_duration", "stage") {
		for _, g := range audioGoals {
			add(stage, g.says, o.Get(g.name, g.label, g.value, "stage", stage))
		}
		lower, upper := o.Get("audio_goodput_ratio", "bound", "lower", "stage", stage),
			o.Get("audio_goodput_ratio", "bound", "upper", "stage", stage)
		add(stage, "all of real time, first packet and gaps: at least", lower)
		add(stage, "all of real time, first packet and gaps: at most", upper)
		if d := o.Get("silent_loss_ratio", "stage", stage); d != nil && d.Status.Defined() {
			add(stage, "lost: ended without audio", d)
		}
	}
	return tab
}
