package main

import (
	"slices"
	"time"
)

// witness notes in which seconds the host of a virtual machine took its processors
// away: a machine that stands still makes every schedule late, whoever keeps it.
type witness struct {
	seconds []second
	stop    chan struct{}
	done    chan struct{}
}

// second is the time up to an instant, and how much of it others had.
type second struct {
	untilNS int64 // since 1970
	stolen  float64
}

// stolenShare is from which share of a second on it is not judged.
const stolenShare = 0.01

// watchHost begins to watch. The caller must call end.
func watchHost() *witness {
	w := &witness{stop: make(chan struct{}), done: make(chan struct{})}
	go w.watch()
	return w
}

func (w *witness) watch() {
	defer close(w.done)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	before := readHostTime()
	for {
		last := false
		select {
		case <-tick.C:
		case <-w.stop:
			last = true
		}
		now := readHostTime()
		w.seconds = append(w.seconds, second{time.Now().UnixNano(), now.since(before)})
		before = now
		if last {
			return
		}
	}
}

func (w *witness) end() {
	close(w.stop)
	<-w.done
}

// stole says whether an instant is in a second of which others had too much, or in the
// one after it, which has to make up for it.
func (w *witness) stole(atNS int64) bool {
	i, _ := slices.BinarySearchFunc(w.seconds, atNS, func(s second, at int64) int {
		if s.untilNS < at {
			return -1
		}
		return 1
	})
	for _, j := range []int{i, i - 1} {
		if j >= 0 && j < len(w.seconds) && w.seconds[j].stolen >= stolenShare {
			return true
		}
	}
	return false
}
