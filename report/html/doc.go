// Package html writes the report of a run, or of several, as one HTML file: no network, no other file, nothing of what
// a server sent is ever run.
//
//	timeline := html.NewTimeline(html.TimelineOptions{OriginNS: meta.OriginNS, Interval: meta.Interval})
//	for snapshot := range snapshots { // the same that make the result
//		err = timeline.Add(snapshot)
//	}
//	err = html.Write(w, []html.Input{{Name: "run1", Run: result, Timeline: timeline}}, html.Options{})
//
// The numbers of the page are those of the summary.Run. The pictures come from a Timeline, which is coarse: what it
// shows is for drawing only, and the page says so. A Timeline may still grow: the page of a run that is being recorded
// is made in the same way.
//
// # Bounds
//
// The page of a usual run is below 1 MB and that of a huge one below about 3 MB: series are drawn in the order of
// their use until Options.MaxSeriesBytes are full, the tables have a limit of rows, and what is left out is counted in
// the page.
//
// # Trust
//
// Names, labels, help texts and errors are hostile. They reach the page through html/template, or as deflated JSON
// that the script only ever turns into text nodes and pixels. The Content-Security-Policy of the page allows the two
// scripts and the style sheet by their hashes, images that are part of the page, and nothing else; a live page may
// also ask its own server for a newer one.
//
// The script library is uPlot (MIT), in the folder assets with its licence.
package html
