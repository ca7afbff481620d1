package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is in what times of processes are told to programs, whatever the kernel counts in.
const ticksPerSecond = 100

// stat is what /proc tells of a process or a thread.
type stat struct {
	parent, group int
	start         uint64 // tells two of one pid apart
	ticks, waited uint64 // CPU time of its own, and of those that ended and that it waited for
	threads       int
	pages         int64
}

// readStat reads a file stat. The name of a program, which stands in parentheses, may hold anything.
func readStat(path string) (s stat, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return stat{}, false
	}
	return parseStat(text)
}

func parseStat(text []byte) (s stat, ok bool) {
	at := bytes.LastIndexByte(text, ')')
	if at < 0 {
		return stat{}, false
	}
	f := strings.Fields(string(text[at+1:])) // f[0] is the third field
	if len(f) < 22 {
		return stat{}, false
	}
	var v [22]int64
	for i := 1; i < len(v); i++ {
		if v[i], _ = strconv.ParseInt(f[i], 10, 64); v[i] < 0 {
			v[i] = 0
		}
	}
	return stat{parent: int(v[1]), group: int(v[2]), ticks: uint64(v[11] + v[12]), waited: uint64(v[13] + v[14]),
		threads: int(v[17]), start: uint64(v[19]), pages: v[21]}, true
}

// readRunnable reads how long a thread ran or waited for a CPU, in ns; a kernel that does not tell of waiting tells of
// running alone, in ticks.
func readRunnable(dir string) (uint64, bool) {
	text, err := os.ReadFile(filepath.Join(dir, "schedstat"))
	if f := strings.Fields(string(text)); err == nil && len(f) == 3 {
		ran, err := strconv.ParseUint(f[0], 10, 63)
		waited, err2 := strconv.ParseUint(f[1], 10, 63)
		return ran + waited, err == nil && err2 == nil
	}
	s, ok := readStat(filepath.Join(dir, "stat"))
	return s.ticks * (1e9 / ticksPerSecond), ok
}

// readAllowed reads the CPUs that a process may run on: "0-3,8".
func readAllowed(path string) []int {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	_, rest, _ := bytes.Cut(text, []byte("\nCpus_allowed_list:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return parseList(strings.TrimSpace(string(line)))
}

// maxCPUs bounds what a list of CPUs may name.
const maxCPUs = 1 << 14

func parseList(text string) (out []int) {
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		to := from
		if isRange && err == nil {
			to, err = strconv.Atoi(high)
		}
		for cpu := from; err == nil && cpu >= 0 && cpu <= min(to, maxCPUs); cpu++ {
			out = append(out, cpu)
		}
	}
	return out
}

// readQuota returns how many CPUs the control groups of a process leave it, 0 for no limit: the least of its group and
// those above it, of the unified hierarchy or that of the controller cpu.
func readQuota(path, cgroup string) (least float64) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		unified := controllers == ""
		if !ok || !filepath.IsAbs(group) || !unified && !strings.Contains(","+controllers+",", ",cpu,") {
			continue
		}
		for dir := filepath.Clean(group); ; dir = filepath.Dir(dir) {
			if q := quotaOf(filepath.Join(cgroup, dir), filepath.Join(cgroup, "cpu", dir), unified); q > 0 &&
				(least == 0 || q < least) {
				least = q
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}

// quotaOf returns the CPUs of one group, 0 for no limit.
func quotaOf(unified, legacy string, isUnified bool) float64 {
	read := func(path string) string {
		text, _ := os.ReadFile(path) // a group without the file has no limit
		return string(text)
	}
	var words []string
	if isUnified {
		words = strings.Fields(read(filepath.Join(unified, "cpu.max")))
	} else {
		words = strings.Fields(read(filepath.Join(legacy, "cpu.cfs_quota_us")) + " " +
			read(filepath.Join(legacy, "cpu.cfs_period_us")))
	}
	if len(words) != 2 {
		return 0
	}
	quota, err := strconv.ParseFloat(words[0], 64) // "max" and -1 are no limit
	period, err2 := strconv.ParseFloat(words[1], 64)
	if err != nil || err2 != nil || !(quota > 0) || !(period > 0) {
		return 0
	}
	return quota / period
}
