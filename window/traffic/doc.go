// Package traffic finds when a server had requests, from what its polls show.
//
// A [Detector] takes the polls of one target and keeps what little the answer needs; [Find] joins those of all targets
// of a run:
//
//	for s := range snapshots {
//		err = detector.Add(s, born) // as package continuity adjusts it
//	}
//	load := traffic.Find([]*traffic.Detector{detector})
//
// A poll is active when something that tells of requests moved since the stored poll before it, or when a number of
// present requests is above 0; [Evidence] says which series those are. Active polls less than max(5 s, 10 intervals)
// apart are one [Segment]. Its edges lie between two polls; the estimate within them uses how many requests began, how
// fast they came and how long they took, and the bounds are what the polls prove (design document windows.md, section
// 3). A detector's memory does not grow with the length of a run.
package traffic
