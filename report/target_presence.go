package report

import "github.com/scrapestat/scrapestat/summary"

// lives lists the targets that came or went during the run, a row for each time they were there. Times count from the
// start of the recording.
func (t *pageBuilder) lives() {
	tab := newTable("came_and_went", "came and went", words("target", "TARGET"), face("FROM..TO"), hidden("from_ns"),
		hidden("to_ns"), words("why", "WHY"))
	t.limit(tab, firstTargets, "--all")
	for i := range t.run.Endpoints {
		e := &t.run.Endpoints[i]
		for _, r := range stays(e) {
			from, to := "start", "end"
			var fromNS, toNS any
			if r.from != 0 {
				from, fromNS = seconds(r.from-t.run.OriginNS), r.from
			}
			if r.to != 0 {
				to, toNS = seconds(r.to-t.run.OriginNS), r.to
			}
			tab.row(str(e.Shown()), only(from+".."+to), raw(fromNS), raw(toNS), str(r.why))
		}
	}
	t.add(tab)
}

// stay is a time a target was there; 0 is the start or the end of the run.
type stay struct {
	from, to int64
	why      string
}

func stays(e *summary.Endpoint) []stay {
	var out []stay
	open := len(e.Lives) > 0 && e.Lives[0].Gone
	now := stay{}
	for _, l := range e.Lives {
		switch {
		case !l.Gone:
			now, open = stay{from: l.AtNS, why: l.Reason}, true
		case open:
			now.to = l.AtNS
			if now.why != "" {
				now.why += "; "
			}
			now.why += l.Reason
			out, open = append(out, now), false
		}
	}
	if open {
		out = append(out, now)
	}
	return out
}
