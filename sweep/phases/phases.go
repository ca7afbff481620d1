// Package phases reads what load generators tell about when they measured, and under which load: benchmarks of
// guidellm, profiles of AIPerf, results of vllm bench serve.
package phases

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxBytes is how large a file may be.
const MaxBytes = 256 << 20

// maxPhases bounds how many phases a file may have, maxName how long the name of one is.
const (
	maxPhases = 1000
	maxName   = 200
)

// Phase is a stretch that a load generator measured, called after its load: "rate-8", "concurrency-64". Times are Unix
// nanoseconds of the load generator's clock.
type Phase struct {
	Name           string
	StartNS, EndNS int64
	Warmup         bool // it does not count
}

// ErrNoClock is the error of a file that does not tell when its load ran.
var ErrNoClock = errors.New("stages of inference-perf have no times: sweep RUN --plateaus finds loads in the recording")

// ErrZone is the error of a file whose times have no zone where none is given.
var ErrZone = errors.New("its times have no zone")

// file has the fields of all kinds of files that are told apart.
type file struct {
	Benchmarks []benchmark `json:"benchmarks"` // of guidellm

	Start  string `json:"start_time"` // of AIPerf, without a zone
	End    string `json:"end_time"`
	Config struct {
		Phases []struct {
			Kind string `json:"kind"`
			load
		} `json:"phases"`
		LoadGen load `json:"loadgen"` // of versions before 0.13
	} `json:"input_config"`

	Date        string          `json:"date"` // of vllm bench serve: of the end, local, whole seconds
	Duration    float64         `json:"duration"`
	RequestRate json.RawMessage `json:"request_rate"` // a number or "inf"
	Concurrency float64         `json:"max_concurrency"`

	LoadSummary json.RawMessage `json:"load_summary"` // of inference-perf

	Phases []listed `json:"phases"` // of AIPerf's phase_manifest.json
}

// listed is a phase of AIPerf's list.
type listed struct {
	Name  string   `json:"phase_name"`
	Kind  string   `json:"phase_kind"`
	Index *float64 `json:"phase_index"`
	Start *int64   `json:"start_ns"`
	End   *int64   `json:"end_ns"`
}

// benchmark is one of guidellm, with its strategy and times where its versions have them.
type benchmark struct {
	Config  struct{ Strategy strategy } `json:"config"`
	Args    struct{ Strategy strategy } `json:"args"`
	Metrics struct {
		Start float64 `json:"measure_start_time"`
		End   float64 `json:"measure_end_time"`
	} `json:"scheduler_metrics"`
	Start float64 `json:"start_time"`
	End   float64 `json:"end_time"`
}

type strategy struct {
	Type string `json:"type_"`
	load
	Streams        float64 `json:"streams"`
	MaxConcurrency float64 `json:"max_concurrency"`
}

// load is a rate of requests in a second, or how many are open at once.
type load struct {
	Rate        float64 `json:"rate"`
	RequestRate float64 `json:"request_rate"`
	Concurrency float64 `json:"concurrency"`
}

// name is how a phase of the load is called, fallback where none is told.
func (l load) name(fallback string) string {
	for _, n := range []struct {
		unit  string
		value float64
	}{{"rate", l.Rate}, {"rate", l.RequestRate}, {"concurrency", l.Concurrency}} {
		if n.value > 0 && n.value < 1e9 {
			return n.unit + "-" + strconv.FormatFloat(n.value, 'g', 6, 64)
		}
	}
	return fallback
}

// Read reads a file of a load generator and returns its phases in the order of time. zone is that of times without one;
// nil refuses these with ErrZone. left is how many were left out for want of a start or an end.
func Read(data []byte, zone *time.Location) (out []Phase, left int, err error) {
	var f file
	if out, err = f.read(data, zone); err != nil {
		return nil, 0, err
	}
	return out, len(f.Phases) - min(len(out), len(f.Phases)), nil
}

func (f *file) read(data []byte, zone *time.Location) (out []Phase, err error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("the file has more than %d MiB", MaxBytes>>20)
	}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("not the JSON of a load generator: %w", err)
	}
	switch {
	case len(f.Phases) > 0:
		return f.list()
	case len(f.Benchmarks) > 0:
		out, err = f.guidellm()
	case f.Start != "" && f.End != "":
		out, err = f.aiperf(zone)
	case f.Date != "" && f.Duration > 0:
		out, err = f.vllm(zone)
	case f.LoadSummary != nil:
		return nil, ErrNoClock
	default:
		return nil, errors.New("no file of guidellm (benchmarks), AIPerf (start_time, end_time; phases) or vllm bench " +
			"serve (date, duration)")
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b Phase) int { return cmp.Compare(a.StartNS, b.StartNS) })
	for i := range out {
		if out[i].EndNS <= out[i].StartNS || i > 0 && out[i].StartNS < out[i-1].EndNS {
			return nil, fmt.Errorf("phase %s lasts from %s to %s, which no phase can", out[i].Name, instant(out[i].StartNS),
				instant(out[i].EndNS))
		}
	}
	return out, nil
}

// list is AIPerf's list of phases. Where two overlap, the one before ends when the other begins.
func (f *file) list() (out []Phase, err error) {
	if len(f.Phases) > maxPhases {
		return nil, fmt.Errorf("more than %d phases", maxPhases)
	}
	index := func(l *listed) float64 {
		if l.Index == nil {
			return math.Inf(1)
		}
		return *l.Index
	}
	slices.SortStableFunc(f.Phases, func(a, b listed) int { return cmp.Compare(index(&a), index(&b)) })
	for _, l := range f.Phases {
		if l.Start != nil && l.End != nil && *l.Start > 0 && l.Name != "" && len(l.Name) <= maxName {
			out = append(out, Phase{Name: l.Name, StartNS: *l.Start, EndNS: *l.End, Warmup: l.Kind == "warmup"})
		}
	}
	slices.SortStableFunc(out, func(a, b Phase) int { return cmp.Compare(a.StartNS, b.StartNS) })
	for i := range out {
		if i+1 < len(out) {
			out[i].EndNS = min(out[i].EndNS, out[i+1].StartNS)
		}
	}
	out = slices.DeleteFunc(out, func(p Phase) bool { return p.EndNS <= p.StartNS })
	if len(out) == 0 {
		return nil, errors.New("no phase of the list has a start and an end")
	}
	return out, nil
}

func instant(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

func (f *file) guidellm() (out []Phase, err error) {
	if len(f.Benchmarks) > maxPhases {
		return nil, fmt.Errorf("more than %d benchmarks", maxPhases)
	}
	for i := range f.Benchmarks {
		b := &f.Benchmarks[i]
		start, end := b.Metrics.Start, b.Metrics.End
		if end <= start {
			start, end = b.Start, b.End
		}
		if !(start > 0 && end < 1e10) { // Unix seconds, up to the year 2286
			return nil, fmt.Errorf("benchmark %d tells no time of its measurement", i+1)
		}
		s := b.Config.Strategy
		if s.Type == "" {
			s = b.Args.Strategy
		}
		l := s.load
		switch s.Type {
		case "concurrent":
			l = load{Concurrency: s.Streams}
		case "synchronous":
			l = load{Concurrency: 1}
		case "throughput":
			l = load{Concurrency: s.MaxConcurrency}
		}
		fallback := "benchmark-" + strconv.Itoa(i+1)
		if s.Type == "throughput" {
			fallback = "throughput"
		}
		out = append(out, Phase{Name: l.name(fallback), StartNS: unixNS(start), EndNS: unixNS(end)})
	}
	return out, nil
}

// unixNS keeps microseconds, which is what a float64 of Unix seconds has.
func unixNS(seconds float64) int64 { return int64(math.Round(seconds*1e6)) * 1000 }

func (f *file) aiperf(zone *time.Location) ([]Phase, error) {
	var at [2]int64
	for i, text := range []string{f.Start, f.End} {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			if zone == nil {
				return nil, ErrZone
			}
			if t, err = time.ParseInLocation("2006-01-02T15:04:05.999999999", text, zone); err != nil {
				return nil, fmt.Errorf("%q is no time: %w", text, err)
			}
		}
		at[i] = t.UnixNano()
	}
	l := f.Config.LoadGen
	for _, p := range f.Config.Phases {
		if p.Kind == "" || p.Kind == "profiling" {
			l = p.load
		}
	}
	return []Phase{{Name: l.name("aiperf"), StartNS: at[0], EndNS: at[1]}}, nil
}

// vllm has the whole second in which the load ended: the phase is what lies surely within it.
func (f *file) vllm(zone *time.Location) ([]Phase, error) {
	if zone == nil {
		return nil, ErrZone
	}
	end, err := time.ParseInLocation("20060102-150405", f.Date, zone)
	if err != nil {
		return nil, fmt.Errorf("%q is no time: %w", f.Date, err)
	}
	if !(f.Duration > 1 && f.Duration < 1e8) {
		return nil, fmt.Errorf("a duration of %v s: times are whole seconds, so that a phase takes more than one", f.Duration)
	}
	rate, _ := strconv.ParseFloat(strings.Trim(string(f.RequestRate), `"`), 64)
	l := load{Rate: rate, Concurrency: f.Concurrency}
	if math.IsInf(rate, 0) || f.Concurrency > 0 && rate <= 0 {
		l.Rate = 0
	}
	start := end.UnixNano() - int64(f.Duration*1e9) + 1e9
	return []Phase{{Name: l.name("throughput"), StartNS: start, EndNS: end.UnixNano()}}, nil
}
