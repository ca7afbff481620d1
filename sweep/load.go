package sweep

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// unitWords are what loads are called, and what they count.
var unitWords = map[string]string{"rate": PerSecond, "requestrate": PerSecond, "rps": PerSecond, "qps": PerSecond,
	"concurrency": Concurrent, "maxconcurrency": Concurrent, "c": Concurrent, "users": Concurrent, "streams": Concurrent}

// unitOf is what a name counts, "" for one that is not known: request_rate, max-concurrency.
func unitOf(name string) string {
	return unitWords[strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))]
}

// loadName is a word, what separates it, and a number at the end.
var loadName = regexp.MustCompile(`(?i)(?:^|[^a-z])((?:request|max)[-_])?([a-z]+)(?:[-_:=] ?)?(-?[0-9]+(?:\.[0-9]+)?)$`)

// NamedLoad reads the load out of the name of a phase, such as rate-8, rps=8, qps8, concurrency-64, c64 and users-64:
// the word decides the unit, the last number is the load. ok is false for a name that has none.
func NamedLoad(name string) (load float64, unit string, ok bool) {
	m := loadName.FindStringSubmatch(name)
	if m == nil {
		return 0, "", false
	}
	if unit = unitOf(m[2]); unit == "" {
		return 0, "", false
	}
	load, err := strconv.ParseFloat(m[3], 64)
	return load, unit, err == nil
}

// loadTags are tags of runs that tell a load, in the order in which they count.
var loadTags = []string{"rate", "request_rate", "concurrency", "max_concurrency"}

// TaggedLoad reads the load out of the tags of a run: of the one tag, or of the first that tells a load where it is "".
func TaggedLoad(tags map[string]string, tag string) (load float64, unit string, ok bool, err error) {
	of := loadTags
	if tag != "" {
		of = []string{tag}
	}
	for _, key := range of {
		text, has := tags[key]
		if !has || tag == "" && !number.MatchString(text) {
			continue
		}
		if load, err = strconv.ParseFloat(text, 64); err != nil {
			return 0, "", false, fmt.Errorf("tag %s=%s is no number", key, text)
		}
		if unit = unitOf(key); unit == "" {
			unit = key
		}
		return load, unit, true, nil
	}
	return 0, "", false, nil
}

var number = regexp.MustCompile(`^-?[0-9.]+([eE][-+]?[0-9]+)?$`)

// loadFlags are flags of load generators that tell a load.
var loadFlags = []string{"--request-rate", "--max-concurrency", "--concurrency"}

// CommandLoad reads the load out of the command line of a run, behind its "--". Of a rate and a concurrency the rate
// is the load, unless it is inf.
func CommandLoad(command []string) (load float64, unit string, ok bool) {
	i := slices.Index(command, "--")
	if i < 0 {
		return 0, "", false
	}
	for _, flag := range loadFlags {
		for k, word := range command[i+1:] {
			value, joined := strings.CutPrefix(word, flag+"=")
			if word == flag && i+2+k < len(command) {
				value, joined = command[i+2+k], true
			}
			if v, err := strconv.ParseFloat(value, 64); joined && err == nil && !math.IsInf(v, 0) {
				return v, unitOf(flag[2:]), true
			}
		}
	}
	return 0, "", false
}
