// Package history keeps what matters of many runs in one SQLite file: judged values, settings and what the
// configuration was; it finds in them where a quantity changed, how much runs of one configuration vary, and whether a
// new run fits the last level.
//
// The file is made again at any time by adding the runs again. A run is added in one transaction: it is there entirely
// or not. What is found is computed from all points each time, so the order of adding does not matter.
//
// A File may be used by one goroutine at a time; several processes may have the same file open. Nothing here starts
// goroutines. Series and what is found in them belong to the caller.
package history
