package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/simulate"
	"github.com/scrapestat/scrapestat/internal/simulate/record"
)

// parseSpecs reads the servers of simulate --record. What one does not say is as
// the flags have it; each has another seed, so that two of a kind are not equal.
func parseSpecs(args []string, flags simulate.Options) ([]record.Server, error) {
	var out []record.Server
	names := map[string]bool{}
	for i, arg := range args {
		head, settings, _ := strings.Cut(arg, ",")
		name, profile, named := strings.Cut(head, "=")
		if !named {
			profile = name
		}
		spec := record.Server{Name: name, Profile: profile, Options: flags}
		spec.Options.Seed += uint64(i)
		if !plainTargetName(name) || names[name] {
			return nil, usagef("server %q: want [NAME=]PROFILE[,KEY=VALUE...] with a NAME of its own, of letters, digits, "+
				"- and _", arg)
		}
		names[name] = true
		for setting := range strings.SplitSeq(settings, ",") {
			if err := setServer(&spec, setting); err != nil {
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

// setServer takes one KEY=VALUE.
func setServer(s *record.Server, setting string) (err error) {
	if setting == "" {
		return nil
	}
	key, value, _ := strings.Cut(setting, "=")
	if at, ok := strings.CutPrefix(key, "rate@"); ok {
		return setStep(s, at, value)
	}
	switch key {
	case "rate":
		s.Options.Rate, err = strconv.ParseFloat(value, 64)
	case "seed":
		s.Options.Seed, err = strconv.ParseUint(value, 10, 64)
	case "engines":
		s.Options.Engines, err = strconv.Atoi(value)
	case "step":
		s.Options.Hardware.StepBase, err = time.ParseDuration(value)
	case "down":
		from, to, _ := strings.Cut(value, "..")
		if s.DownFrom, err = time.ParseDuration(from); err == nil {
			s.DownTo, err = time.ParseDuration(to)
		}
		if err == nil && (s.DownFrom < 0 || s.DownTo <= s.DownFrom) {
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

// setStep changes the rate at an offset.
func setStep(s *record.Server, at, value string) error {
	offset, err := time.ParseDuration(at)
	if err != nil {
		return usagef("rate@%s: %w", at, err)
	}
	rate, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return usagef("rate@%s=%s: %w", at, value, err)
	}
	s.Options.Load = append(s.Options.Load, simulate.LoadStep{At: offset, Rate: rate})
	return nil
}
