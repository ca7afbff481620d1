//go:build race

package events_test

// underRace reports whether the race detector watches, which makes everything ten times
// slower.
const underRace = true
