package main

import "testing"

func TestWitness(t *testing.T) {
	w := &witness{seconds: []second{{10, 0}, {20, 0.5}, {30, 0}, {40, 0.001}}}
	for at, want := range map[int64]bool{1: false, 10: false, 11: true, 20: true, 21: true, 30: true, 31: false, 40: false, 50: false} {
		if got := w.stole(at); got != want {
			t.Errorf("at %d: got %v, want %v", at, got, want)
		}
	}
	// One that watches ends when it is told to, with what was left of a second.
	w = watchHost()
	w.end()
	if len(w.seconds) != 1 {
		t.Errorf("got %d seconds, want the one that was cut", len(w.seconds))
	}
}
