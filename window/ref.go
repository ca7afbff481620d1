package window

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// What is the kind of stretch that a selector asks for.
type What string

// The kinds; Default is what [Resolve] finds by itself.
const (
	Default   What = ""
	Traffic   What = "traffic"   // from the first to the last request in flight
	Segments  What = "segments"  // traffic without its gaps
	Segment   What = "segment"   // one of them, Ref.Instance
	Command   What = "command"   // COMMAND, or the base of the load to its end
	Recording What = "recording" // from the first to the last poll
	Phase     What = "phase"     // Ref.Phase, the Ref.Instance'th
	Range     What = "range"     // Ref.From to Ref.To
)

// Ref is the part of a run that somebody asks for. The zero value is the default window.
type Ref struct {
	What     What
	Phase    string
	Instance int   // of a phase or segment, from 1; 0 when none was given
	From, To Point // of a range
	// Warmup and Cooldown are left out at the start and the end; nil is as recorded.
	Warmup, Cooldown *time.Duration
}

// Base is what the offset of a Point counts from.
type Base string

// The bases. A Point with NoBase was left empty.
const (
	NoBase      Base = ""
	FromCommand Base = "command" // COMMAND's start, or the base of the load
	FromTraffic Base = "traffic" // the first request
	Absolute    Base = "time"
)

// Point is an instant of a run.
type Point struct {
	Base   Base
	Offset time.Duration // from FromCommand and FromTraffic
	AtNS   int64         // of Absolute: nanoseconds since 1970
}

// Arg is an argument that names a run.
type Arg struct {
	Name string // of a side: "low" in low=sweep@low; "" for none
	Run  string // a path
	Ref  Ref
	Own  bool // the argument says which part, so that defaults do not apply
}

// Split reads [NAME=]RUN[@WHAT][,MOD...]. isDir reports whether a directory of that name exists: one that is called
// like the whole argument wins, else the last @ is where the selector begins.
func Split(arg string, isDir func(string) bool) (Arg, error) {
	a := Arg{Run: arg}
	if isDir(arg) {
		return a, nil
	}
	if name, rest, ok := strings.Cut(arg, "="); ok && name != "" && !strings.ContainsAny(name, "@/") {
		a.Name, a.Run = name, rest
	}
	at := strings.LastIndexByte(a.Run, '@')
	if at < 0 || isDir(a.Run) {
		return a, nil
	}
	ref, err := Parse(a.Run[at+1:])
	if err != nil {
		return a, fmt.Errorf("%s: %w", arg, err)
	}
	a.Run, a.Ref, a.Own = a.Run[:at], ref, true
	return a, nil
}

// Parse reads WHAT[,MOD...] or MOD[,MOD...], the part of a selector behind its @.
func Parse(text string) (Ref, error) {
	var r Ref
	if !utf8.ValidString(text) || len(text) > 1000 {
		return r, fmt.Errorf("the selector is not text of at most 1000 bytes")
	}
	parts := strings.Split(text, ",")
	first := 0
	if key, _, ok := strings.Cut(parts[0], "="); !ok || key == "phase" {
		if err := r.what(parts[0]); err != nil {
			return Ref{}, err
		}
		first = 1
	}
	for _, p := range parts[first:] {
		if err := r.modify(p); err != nil {
			return Ref{}, err
		}
	}
	return r, nil
}

// what reads WHAT.
func (r *Ref) what(s string) error {
	name, explicit := strings.CutPrefix(s, "phase=")
	if !explicit {
		switch w := What(s); {
		case slices.Contains([]What{Traffic, Segments, Command, Recording}, w):
			r.What = w
			return nil
		case strings.Contains(s, ".."):
			return r.between(s)
		}
	}
	r.What, r.Phase = Phase, name
	if i := strings.LastIndexByte(name, '/'); i >= 0 && digits(name[i+1:]) {
		n, err := strconv.Atoi(name[i+1:])
		if err != nil || n == 0 {
			return fmt.Errorf("%q: instances are numbered from 1", s)
		}
		r.Phase, r.Instance = name[:i], n
	}
	if !explicit && r.Phase == "segment" {
		if r.Phase = ""; r.Instance == 0 {
			return fmt.Errorf("%q: say which one, as in segment/1; a phase of that name is phase=segment", s)
		}
		r.What = Segment
		return nil
	}
	if r.Phase == "" {
		return fmt.Errorf("%q names nothing: write traffic, segments, segment/N, command, recording, a phase or FROM..TO", s)
	}
	return nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// between reads FROM..TO.
func (r *Ref) between(s string) (err error) {
	from, to, _ := strings.Cut(s, "..")
	r.What = Range
	if r.From, err = ParsePoint(from); err == nil {
		r.To, err = ParsePoint(to)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", s, err)
	}
	return r.check()
}

// check refuses a range that is none.
func (r *Ref) check() error {
	switch {
	case r.From.Base == NoBase && r.To.Base == NoBase:
		return fmt.Errorf("a range needs a start or an end")
	case r.From.Base == r.To.Base && (r.To.Offset < r.From.Offset || r.To.AtNS < r.From.AtNS ||
		r.From.Offset == r.To.Offset && r.From.AtNS == r.To.AtNS):
		return fmt.Errorf("a range must end after its start")
	}
	return nil
}

// ParsePoint reads an instant: 30s from COMMAND's start, +30s from the first request, or RFC 3339; "" is none.
func ParsePoint(s string) (Point, error) {
	if s == "" {
		return Point{}, nil
	}
	p := Point{Base: FromCommand}
	rest, plus := strings.CutPrefix(s, "+")
	if plus {
		p.Base = FromTraffic
	}
	var err error
	if p.Offset, err = time.ParseDuration(rest); err == nil {
		if strings.ContainsAny(rest[:1], "+-") || p.Offset < 0 {
			return Point{}, fmt.Errorf("%q: an offset must not be negative", s)
		}
		return p, nil
	}
	at, terr := time.Parse(time.RFC3339Nano, s)
	if terr != nil {
		return Point{}, fmt.Errorf("%q is no duration such as 30s, +30s and no time such as 2026-01-02T15:04:05Z", s)
	}
	return Point{Base: Absolute, AtNS: at.UnixNano()}, nil
}

// modify reads a MOD.
func (r *Ref) modify(s string) error {
	key, value, _ := strings.Cut(s, "=")
	to := map[string]**time.Duration{"warmup": &r.Warmup, "cooldown": &r.Cooldown}[key]
	if to == nil {
		return fmt.Errorf("%q: known are warmup=D and cooldown=D", s)
	}
	if *to != nil {
		return fmt.Errorf("%q: %s is given twice", s, key)
	}
	d, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return fmt.Errorf("%q: %s needs a duration such as 10s", s, key)
	case d < 0:
		return fmt.Errorf("%q: %s is negative", s, key)
	}
	*to = &d
	return nil
}

// String is the selector as people write it behind an @; "" for the default window.
func (r *Ref) String() string {
	var parts []string
	instance := ""
	if r.Instance > 0 {
		instance = "/" + strconv.Itoa(r.Instance)
	}
	switch r.What {
	case Default:
	case Phase:
		if again, err := Parse(r.Phase); err != nil || again != (Ref{What: Phase, Phase: r.Phase}) {
			parts = append(parts, "phase="+r.Phase+instance)
		} else {
			parts = append(parts, r.Phase+instance)
		}
	case Range:
		parts = append(parts, r.From.String()+".."+r.To.String())
	default:
		parts = append(parts, string(r.What)+instance)
	}
	if r.Warmup != nil {
		parts = append(parts, "warmup="+r.Warmup.String())
	}
	if r.Cooldown != nil {
		parts = append(parts, "cooldown="+r.Cooldown.String())
	}
	return strings.Join(parts, ",")
}

// String is the instant as [ParsePoint] reads it.
func (p Point) String() string {
	switch p.Base {
	case FromCommand:
		return p.Offset.String()
	case FromTraffic:
		return "+" + p.Offset.String()
	case Absolute:
		return time.Unix(0, p.AtNS).UTC().Format(time.RFC3339Nano)
	}
	return ""
}
