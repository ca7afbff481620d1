package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// simulateSpec is a server of simulate --record as it was asked for:
// [NAME=]PROFILE[,KEY=VALUE...].
type simulateSpec struct {
	text, name, profile string
	sim                 simulate.Options
	downFrom, downTo    time.Duration // no process answers from downFrom until downTo
}

// parseSpecs reads the servers of simulate --record. What one does not say is as
// the flags have it; each has another seed, so that two of a kind are not equal.
func parseSpecs(args []string, flags simulate.Options) ([]simulateSpec, error) {
	var out []simulateSpec
	names := map[string]bool{}
	for i, arg := range args {
		head, settings, _ := strings.Cut(arg, ",")
		name, profile, named := strings.Cut(head, "=")
		if !named {
			profile = name
		}
		spec := simulateSpec{text: arg, name: name, profile: profile, sim: flags}
		spec.sim.Seed += uint64(i)
		if !plainTargetName(name) || names[name] {
			return nil, usagef("server %q: want [NAME=]PROFILE[,KEY=VALUE...] with a NAME of its own, of letters, digits, "+
				"- and _", arg)
		}
		names[name] = true
		for setting := range strings.SplitSeq(settings, ",") {
			if err := spec.set(setting); err != nil {
				return nil, usagef("server %q: %w", arg, err)
			}
		}
		out = append(out, spec)
	}
	return out, nil
}

// plainTargetName reports whether a name can stand for the host in an address.
func plainTargetName(name string) bool {
	rest := strings.TrimFunc(name, func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	})
	return name != "" && rest == ""
}

// set takes one KEY=VALUE.
func (s *simulateSpec) set(setting string) (err error) {
	if setting == "" {
		return nil
	}
	key, value, _ := strings.Cut(setting, "=")
	if at, ok := strings.CutPrefix(key, "rate@"); ok {
		return s.step(at, value)
	}
	switch key {
	case "rate":
		s.sim.Rate, err = strconv.ParseFloat(value, 64)
	case "seed":
		s.sim.Seed, err = strconv.ParseUint(value, 10, 64)
	case "engines":
		s.sim.Engines, err = strconv.Atoi(value)
	case "step":
		s.sim.Hardware.StepBase, err = time.ParseDuration(value)
	case "down":
		from, to, _ := strings.Cut(value, "..")
		if s.downFrom, err = time.ParseDuration(from); err == nil {
			s.downTo, err = time.ParseDuration(to)
		}
		if err == nil && (s.downFrom < 0 || s.downTo <= s.downFrom) {
			return usagef("%s: want FROM..TO, offsets from the start of the run", setting)
		}
	default:
		return usagef("unknown key in %q (known: rate, rate@OFFSET, seed, engines, step, down)", setting)
	}
	if err != nil {
		return usagef("%s: %w", setting, err)
	}
	return nil
}

// step is a change of the rate at an offset.
func (s *simulateSpec) step(at, value string) error {
	offset, err := time.ParseDuration(at)
	if err != nil {
		return usagef("rate@%s: %w", at, err)
	}
	rate, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return usagef("rate@%s=%s: %w", at, value, err)
	}
	s.sim.Load = append(s.sim.Load, simulate.LoadStep{At: offset, Rate: rate})
	return nil
}
