// Package faults holds what every fault test shares: the list of the cases that must be survived, the rules by which
// nothing is lost, and the figures of the long runs, from which docs/data/reliability.md is made.
//
// A case has an id, such as T09. Its test is a subtest whose name begins with that id, in whichever package the
// behaviour belongs to; TestComplete fails when an id has none, so that
//
//	go test ./... -run 'TestCatalogue|TestFault' -v
//
// shows all of them. The rules are checked of a run directory as it lies on the
// disk, after every test that records one:
//
//		err := faults.Check(ctx, faults.Evidence{Dir: dir, Formats: []string{"json"}})
//
//	 1. Every scheduled poll has exactly one outcome, none by a panic; all are exported.
//	 2. Stored and dropped lines add up to the lines of every accepted body.
//	 3. The exports that were asked for are there, each independent of the others.
//	 4. A file is complete or absent, closed to others, and leaves no remains.
//	 5. What a killed run exports is what a run that ended there exports: see Same.
//	 6. Nothing that was written holds a secret.
package faults
