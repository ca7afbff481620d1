package process

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// What a target of this kind is called in outputs.
const (
	Name   = "client"
	Target = "process:command"
)

// Options configures a Source. The zero value reads this machine.
type Options struct {
	Proc, Cgroup string                   // "" is /proc and /sys/fs/cgroup
	Keep         func(family string) bool // which families are recorded; nil is all
}

// Available reports whether this operating system tells of its processes.
func Available() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

// Source reads a process tree and its machine. Make one with [New]; it has one owner, but for Follow.
type Source struct {
	o    Options
	root atomic.Int64 // the command, 0 before it was started
	g    metric.SnapshotBuilder

	members map[int]*member  // of the tree, by pid
	others  map[int]struct{} // processes that are not
	ticks   float64          // CPU time of the tree since it was started
	busy    [2]float64       // at the last poll that was long enough after the one before it: of the CPUs, of a thread
	cores   float64          // that the tree may use
	quota   float64          // of the control groups of the command, 0 for none
	asked   bool             // for quota
	lastNS  int64            // when busy was computed
	base    float64          // ticks then
}

// member is a process of the tree as of the last poll.
type member struct {
	stat
	threads map[int]uint64 // by thread how long it ran or waited, in ns, as of the last poll that busy was computed at
	ran     bool           // since the poll before
}

// New returns a source that tells of the host alone until Follow.
func New(o Options) *Source {
	if o.Proc == "" {
		o.Proc, o.Cgroup = "/proc", "/sys/fs/cgroup"
	}
	return &Source{o: o, members: map[int]*member{}, others: map[int]struct{}{}}
}

// Follow tells which process is the head of the tree. It may be called from any goroutine.
func (s *Source) Follow(pid int) { s.root.Store(int64(pid)) }

// shortest is the least time between two polls over which a share of time is computed: the system counts in steps
// of 10 ms.
const shortest = 500 * time.Millisecond

// Poll implements scrape.Source. What cannot be read is not there: it is no failure.
func (s *Source) Poll(_ context.Context, now func() int64, snap *metric.Snapshot) {
	*snap = metric.Snapshot{Target: snap.Target, Seq: snap.Seq, Kind: snap.Kind, DueNS: snap.DueNS, SentNS: now(),
		Warnings: snap.Warnings}
	s.host()
	if root := int(s.root.Load()); root > 0 {
		s.find(root)
		s.tree(root, snap.SentNS)
	}
	s.g.Finish(snap)
	snap.Duration = time.Duration(now() - snap.SentNS)
}

// maxProcesses and maxThreads bound what is read of a tree in one poll.
const (
	maxProcesses = 1024
	maxThreads   = 4096
)

// find brings members up to date: those that ended go, those that are new come.
func (s *Source) find(root int) {
	var fresh []int
	here := map[int]struct{}{}
	for _, pid := range numbers(filepath.Join(s.o.Proc)) {
		if _, other := s.others[pid]; other {
			here[pid] = struct{}{}
		} else if s.members[pid] == nil {
			fresh = append(fresh, pid)
		}
	}
	s.others = here
	found := map[int]stat{}
	for _, pid := range fresh {
		if st, ok := readStat(s.path(pid, "stat")); ok {
			found[pid] = st
		}
	}
	for again := true; again; { // a child may be listed before its parent
		again = false
		for _, pid := range fresh {
			st, ok := found[pid]
			_, child := s.members[st.parent]
			if ok && (pid == root || child || st.group == root) && len(s.members) < maxProcesses {
				s.members[pid], again = &member{stat: stat{start: st.start, parent: st.parent}}, true
				delete(found, pid)
			}
		}
	}
	for pid := range found {
		s.others[pid] = struct{}{}
	}
}

// tree gives what the members use.
func (s *Source) tree(root int, atNS int64) {
	var sum struct{ memory, threads, files, processes float64 }
	gained := 0.0
	var gone []*member
	for pid, m := range s.members {
		st, ok := readStat(s.path(pid, "stat"))
		if !ok || st.start != m.start {
			gone = append(gone, m)
			delete(s.members, pid)
			continue
		}
		gained += float64(st.ticks+st.waited) - float64(m.ticks+m.waited)
		m.ran = m.ran || st.ticks > m.ticks
		m.stat = st
		sum.processes++
		sum.memory += float64(st.pages) * float64(os.Getpagesize())
		sum.threads += float64(st.threads)
		sum.files += s.files(pid)
	}
	for _, m := range gone { // its time is with its parent now, if that has waited for it
		if s.members[m.parent] != nil {
			gained -= float64(m.ticks + m.waited)
		}
	}
	s.ticks += max(0, gained)
	s.counter(cpuSeconds, s.ticks/ticksPerSecond)
	s.gauge(processes, sum.processes)
	if sum.processes == 0 {
		return
	}
	s.gauge(residentMemory, sum.memory)
	s.gauge(threads, sum.threads)
	s.gauge(openFiles, sum.files)
	s.shares(root, atNS)
}

// shares gives the shares of time in which the tree ran: of the CPUs that it may use, and of its busiest thread.
func (s *Source) shares(root int, atNS int64) {
	if passed := time.Duration(atNS - s.lastNS); s.lastNS == 0 || passed >= shortest {
		s.limits(root)
		most := s.busiest()
		if s.lastNS != 0 {
			s.busy = [2]float64{(s.ticks - s.base) / ticksPerSecond / passed.Seconds() / s.cores,
				min(1, float64(most)/float64(passed))}
		}
		first := s.lastNS == 0
		s.lastNS, s.base = atNS, s.ticks
		if first {
			return
		}
	}
	s.gauge(cpuLimit, s.cores)
	s.gauge(cpuUtilization, s.busy[0])
	s.gauge(threadUtilization, s.busy[1])
}

// busiest returns the longest time, in ns, that a thread ran or waited for a CPU since it was last asked for.
func (s *Source) busiest() (most uint64) {
	read := 0
	for pid, m := range s.members {
		now := map[int]uint64{}
		for _, tid := range numbers(s.path(pid, "task")) {
			if read++; read > maxThreads {
				break
			}
			if ns, ok := readRunnable(s.path(pid, "task", strconv.Itoa(tid))); ok {
				now[tid] = ns
			}
		}
		for tid, ns := range now {
			if before, ok := m.threads[tid]; ok && ns > before {
				most = max(most, ns-before)
			}
		}
		m.threads = now
	}
	return most
}

// limits reads how many CPUs those of the tree that ran may use: what the scheduler lets them, within what the control
// groups of the command leave.
func (s *Source) limits(root int) {
	allowed := map[int]bool{}
	for pid, m := range s.members {
		if m.ran || len(s.members) == 1 {
			for _, cpu := range readAllowed(s.path(pid, "status")) {
				allowed[cpu] = true
			}
		}
		m.ran = false
	}
	if len(allowed) > 0 || s.cores == 0 {
		s.cores = float64(max(1, len(allowed)))
	}
	if !s.asked {
		s.asked = true
		s.quota = readQuota(s.path(root, "cgroup"), s.o.Cgroup)
	}
	if s.quota > 0 {
		s.cores = min(s.cores, s.quota)
	}
}

// files is how many descriptors a process holds, 0 where that may not be known.
func (s *Source) files(pid int) float64 {
	if info, err := os.Stat(s.path(pid, "fd")); err == nil && info.Size() > 0 {
		return float64(info.Size()) // Linux counts them since 6.2
	}
	return float64(len(numbers(s.path(pid, "fd"))))
}

func (s *Source) path(pid int, rest ...string) string {
	return filepath.Join(slices.Concat([]string{s.o.Proc, strconv.Itoa(pid)}, rest)...)
}

// numbers are the names in a directory that are numbers, ascending.
func numbers(dir string) (out []int) {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}
