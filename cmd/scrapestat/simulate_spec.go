package main

import (
	"cmp"
	"maps"
	"slices"
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
	switch set := planted(&s.Options)[key]; {
	case set != nil:
		err = set(value)
	case key == "down":
		from, to, _ := strings.Cut(value, "..")
		if s.DownFrom, err = time.ParseDuration(from); err == nil {
			s.DownTo, err = time.ParseDuration(to)
		}
		if err == nil && (s.DownFrom < 0 || s.DownTo <= s.DownFrom) {
			return usagef("%s: want FROM..TO, offsets from the start of the run", setting)
		}
	default:
		return usagef("unknown key in %q (known: rate, rate@OFFSET, down, %s)", setting,
			strings.Join(slices.Sorted(maps.Keys(planted(&s.Options))), ", "))
	}
	if err != nil {
		return usagef("%s: %w", setting, err)
	}
	return nil
}

// planted are the keys that set one option of a server each.
func planted(o *simulate.Options) map[string]func(string) error {
	hw := &o.Hardware
	return map[string]func(string) error{
		"rate": number(&o.Rate), "step": span(&hw.StepBase), "perseq": span(&hw.StepPerSequence),
		"pertok": span(&hw.StepPerToken), "engines": count(&o.Engines), "slots": count(&hw.MaxSequences),
		"chunk": count(&hw.MaxStepTokens), "blocks": count(&hw.Blocks), "maxlen": count(&hw.MaxModelLen),
		"prefix": number(&o.PrefixShare), "abort": number(&o.AbortShare), "error": number(&o.ErrorShare),
		"prompt": lengths(&o.Prompt), "output": lengths(&o.Output),
		"seed": func(v string) (err error) { o.Seed, err = strconv.ParseUint(v, 10, 64); return err },
		"cold": func(v string) error {
			slow, long, _ := strings.Cut(v, ":")
			return cmp.Or(number(&o.ColdStart.Slowdown)(slow), span(&o.ColdStart.For)(long))
		},
	}
}

func number(to *float64) func(string) error {
	return func(v string) (err error) { *to, err = strconv.ParseFloat(v, 64); return err }
}

func count(to *int) func(string) error {
	return func(v string) (err error) { *to, err = strconv.Atoi(v); return err }
}

func span(to *time.Duration) func(string) error {
	return func(v string) (err error) { *to, err = time.ParseDuration(v); return err }
}

// lengths reads MEAN[:CV] of a distribution of tokens.
func lengths(to *simulate.Lengths) func(string) error {
	return func(v string) error {
		mean, cv, given := strings.Cut(v, ":")
		if err := number(&to.Mean)(mean); err != nil || !given {
			return err
		}
		return number(&to.CV)(cv)
	}
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
