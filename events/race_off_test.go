//go:build !race

package events_test

const underRace = false
