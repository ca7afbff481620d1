package collect

import (
	"sync/atomic"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// liveAnalysis is the incremental analysis of a run while it is recorded. It never
// holds up the recording: polls wait in a queue, and when that is full the analysis
// stays where it is. A nil liveAnalysis does nothing.
type liveAnalysis struct {
	builder *summary.Builder
	onPoll  func(*metric.Snapshot) error
	queue   chan analysed
	done    chan struct{}
	behind  atomic.Bool // the queue was full: what was analysed is not whole
	failed  atomic.Pointer[error]
}

// analysed is a poll, a mark, or a target that was added.
type analysed struct {
	poll   *metric.Snapshot
	mark   *metric.Mark
	target *metric.Target
}

// analysisQueue is how many polls may wait to be analysed.
const analysisQueue = 4096

// startAnalysis begins the analysis of a run that is about to be recorded. The
// caller calls close.
func startAnalysis(meta rundb.Meta, targets []metric.Target, so summary.Options, load *summary.Load,
	onPoll func(*metric.Snapshot) error) (*liveAnalysis, error) {
	b, err := summary.NewBuilder(meta, targets, so, load)
	if err != nil {
		return nil, err
	}
	a := &liveAnalysis{builder: b, onPoll: onPoll, queue: make(chan analysed, analysisQueue), done: make(chan struct{})}
	go a.run()
	return a, nil
}

func (a *liveAnalysis) run() {
	defer close(a.done)
	for n := range a.queue {
		var err error
		switch {
		case a.failed.Load() != nil:
		case n.mark != nil:
			a.builder.Mark(*n.mark)
		case n.target != nil:
			a.builder.AddTarget(*n.target)
		default:
			if err = a.builder.Add(n.poll); err == nil && a.onPoll != nil {
				err = a.onPoll(n.poll)
			}
		}
		if err != nil {
			a.failed.Store(&err)
		}
	}
}

// close ends the analysis, once nobody tells it anything any more.
func (a *liveAnalysis) close() {
	if a != nil {
		close(a.queue)
		<-a.done
	}
}

func (a *liveAnalysis) add(n analysed) {
	if a == nil || a.behind.Load() {
		return
	}
	select {
	case a.queue <- n:
	default:
		a.behind.Store(true)
	}
}

// Record implements Observer.
func (a *liveAnalysis) Record(s *metric.Snapshot) {
	if !a.behind.Load() {
		c := s.Clone()
		a.add(analysed{poll: c})
	}
}

func (a *liveAnalysis) mark(m metric.Mark)        { a.add(analysed{mark: &m}) }
func (a *liveAnalysis) addTarget(t metric.Target) { a.add(analysed{target: &t}) }

// result is the run so far; nowNS is the time on its axis.
func (a *liveAnalysis) result(nowNS int64) (*summary.Run, error) {
	if a == nil {
		return nil, nil
	}
	if err := a.failed.Load(); err != nil {
		return nil, *err
	}
	return a.builder.Result(nowNS)
}

func (a *liveAnalysis) isBehind() bool { return a != nil && a.behind.Load() }
