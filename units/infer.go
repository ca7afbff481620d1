package units

import (
	"regexp"
	"slices"
	"strings"
)

// The patterns of aiperf.md section 4 rule 1. A dash is a hyphen, an en dash or
// an em dash. A range ends at a word boundary, so "0-1.25" is one to AIPerf.
const (
	zero   = `0(?:\.0)?`
	one    = `1(?:\.0)?`
	upto   = `\s*(?:[-–—]+|to)\s*`
	equals = `\s*(?:means|is|equals?|==?)\s*`
)

var (
	ratioRange = regexp.MustCompile(`(?i)\(` + zero + upto + one + `\)|\b` + zero + upto + one + `\b` +
		`|(?:\b|\()` + one + equals + `100\s*(?:%|percent)`)
	percentRange = regexp.MustCompile(`(?i)\(` + zero + upto + `100(?:\.0)?\)|\brange\s+0` + upto + `100\b` +
		`|\b0` + upto + `100\s*%`)
	inTag = regexp.MustCompile(`\(in\s+([^\s)]+)\)`)
)

// rule is a pattern of a description and the unit it stands for.
type rule struct {
	pattern *regexp.Regexp
	unit    string
}

// phrase makes the rule for words after "in" or an opening parenthesis.
func phrase(words, unit string) rule {
	return rule{regexp.MustCompile(`(?i)(?:\bin\s+|\()` + words + `(?:\b|\))`), unit}
}

// phrases are the rules of aiperf.md section 4 rule 3, in their order.
var phrases = []rule{
	phrase(`seconds?`, "seconds"),
	phrase(`(?:milliseconds?|ms)`, "milliseconds"),
	phrase(`(?:nanoseconds?|ns)`, "nanoseconds"),
	phrase(`bytes?`, "bytes"),
	phrase(`GB/s`, "gb/s"),
	phrase(`MB/s`, "mb/s"),
	phrase(`tokens?/s(?:ec(?:ond)?)?`, "tokens/s"),
	phrase(`requests?/s(?:ec(?:ond)?)?`, "requests/s"),
	{regexp.MustCompile(`(?i)\bin\s+tokens?\b`), "tokens"},
}

// tags are the units that "(in X)" stands for, case-sensitive as in AIPerf, which
// maps the binary prefixes to the names of the decimal ones.
var tags = map[string]string{
	"MiB": "megabytes", "MB": "megabytes", "GiB": "gigabytes", "GB": "gigabytes",
	"KiB": "kilobytes", "KB": "kilobytes", "TB": "terabytes", "B": "bytes", "C": "celsius",
	"°C": "celsius", "F": "fahrenheit", "°F": "fahrenheit", "K": "kelvin", "Hz": "hertz",
	"MHz": "megahertz", "GHz": "gigahertz", "W": "watt", "mW": "milliwatt", "J": "joule",
	"mJ": "millijoule", "MJ": "megajoule", "s": "seconds", "sec": "seconds", "ms": "milliseconds",
	"us": "microseconds", "µs": "microseconds", "ns": "nanoseconds", "GB/s": "gb/s",
	"MB/s": "mb/s", "%": "percent", "percent": "percent",
}

// ending is the end of a name and the unit it stands for.
type ending struct{ suffix, unit string }

// endings are those of aiperf.md section 4 rule 4. The longest that fits wins.
var endings = longestFirst([]ending{
	{"_seconds", "seconds"}, {"_seconds_total", "seconds"},
	{"_milliseconds", "milliseconds"}, {"_ms", "milliseconds"}, {"_ms_total", "milliseconds"},
	{"_nanoseconds", "nanoseconds"}, {"_ns", "nanoseconds"}, {"_ns_total", "nanoseconds"},
	{"_bytes", "bytes"}, {"_bytes_total", "bytes"},
	{"_kilobytes", "kilobytes"}, {"_megabytes", "megabytes"}, {"_gigabytes", "gigabytes"},
	{"_total", "count"}, {"_count", "count"},
	{"_tokens", "tokens"}, {"_tokens_total", "tokens"},
	{"_requests", "requests"}, {"_requests_total", "requests"}, {"_reqs", "requests"}, {"request_success", "requests"},
	{"_errors", "errors"}, {"_errors_total", "errors"}, {"_error_count", "errors"}, {"_error_count_total", "errors"},
	{"_blocks", "blocks"}, {"_blocks_total", "blocks"}, {"_block_count", "blocks"},
	{"_gb_s", "gb/s"},
	{"_ratio", "ratio"}, {"_percent", "percent"}, {"_perc", "percent"},
	{"_celsius", "celsius"}, {"_joules", "joule"}, {"_watts", "watt"},
})

func longestFirst(all []ending) []ending {
	slices.SortStableFunc(all, func(a, b ending) int { return len(b.suffix) - len(a.suffix) })
	return all
}

func byEnding(all []ending, name string) string {
	for _, e := range all {
		if strings.HasSuffix(name, e.suffix) {
			return e.unit
		}
	}
	return ""
}

// Infer returns the unit AIPerf gives to a family, "" for none: from the range of values that help names, else
// from a unit in help, else from the end of name. The rules and their order are those of the design document
// aiperf.md section 4, weaknesses included.
func Infer(name, help string) string {
	if strings.Contains(help, "1") { // as all ranges do
		switch {
		case ratioRange.MatchString(help):
			return "ratio"
		case percentRange.MatchString(help):
			return "percent"
		}
	}
	if mayNameUnit(help) {
		if m := inTag.FindStringSubmatch(help); m != nil {
			if unit := tags[m[1]]; unit != "" {
				return unit
			}
		}
		for _, p := range phrases {
			if p.pattern.MatchString(help) {
				return p.unit
			}
		}
	}
	name = strings.ToLower(name)
	if unit := byEnding(endings, name); unit != "" {
		return unit
	}
	if strings.Contains(name, "num_requests_") {
		return "requests"
	}
	return ""
}

// mayNameUnit reports whether help has what begins each phrase: an opening parenthesis, or an "in" before a
// space. Most descriptions have neither, and a dozen patterns need not be tried.
func mayNameUnit(help string) bool {
	for i := range len(help) {
		switch help[i] {
		case '(':
			return true
		case 'i', 'I':
			if rest := help[i+1:]; len(rest) > 1 && rest[0]|0x20 == 'n' && strings.IndexByte("\t\n\f\r ", rest[1]) >= 0 {
				return true
			}
		}
	}
	return false
}
