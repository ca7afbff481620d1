package units

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// Number is the unit of values that have none: the answer of [InferExtended] where AIPerf
// sees a ratio in a range that goes beyond 1.
const Number = "number"

var (
	// span is a range that begins at 0 or 0.0, in any brackets.
	span = regexp.MustCompile(`(?i)(?:^|[^\d.])0(?:\.0+)?\s*(?:-|–|—|\.\.|to)+\s*(\d+(?:[.,]\d+)*)\s*(%|percent)?`)
	// binaryTag is a binary prefix, which AIPerf takes for the decimal one.
	binaryTag = regexp.MustCompile(`\(in\s+([KMGT]iB)\)`)
	word      = regexp.MustCompile(`^[\p{L}\d_%°./-]{1,40}$`)
	ratioOf   = regexp.MustCompile(`(?i)^(?:the\s+)?(?:ratio|fraction)\s+of\b`)
)

// ownPhrases are units in descriptions that AIPerf does not know.
var ownPhrases = []rule{
	phrase(`(?:microseconds?|[uµμ]s)`, "microseconds"),
	phrase(`minutes?`, "minutes"),
	phrase(`hours?`, "hours"),
	phrase(`(?:KiB|kibibytes?)`, "kibibytes"),
	phrase(`(?:MiB|mebibytes?)`, "mebibytes"),
	phrase(`(?:GiB|gibibytes?)`, "gibibytes"),
	phrase(`(?:KB|kilobytes?)`, "kilobytes"),
	phrase(`(?:MB|megabytes?)`, "megabytes"),
	phrase(`(?:GB|gigabytes?)`, "gigabytes"),
	phrase(`bytes/s(?:ec(?:ond)?)?`, "bytes/s"),
	phrase(`watts?`, "watt"),
	phrase(`joules?`, "joule"),
	phrase(`(?:degrees?\s+)?celsius`, "celsius"),
	phrase(`hertz`, "hertz"),
	phrase(`percent`, "percent"),
}

// ownEndings are ends of names that AIPerf does not know; a "_total" is taken off before.
var ownEndings = longestFirst([]ending{
	{"_us", "microseconds"}, {"_usec", "microseconds"}, {"_usecs", "microseconds"}, {"_microseconds", "microseconds"},
	{"_msec", "milliseconds"}, {"_msecs", "milliseconds"}, {"_ms", "milliseconds"}, {"_milliseconds", "milliseconds"},
	{"_nsec", "nanoseconds"}, {"_ns", "nanoseconds"}, {"_nanoseconds", "nanoseconds"},
	{"_s", "seconds"}, {"_sec", "seconds"}, {"_secs", "seconds"}, {"_seconds", "seconds"},
	{"_minutes", "minutes"}, {"_hours", "hours"}, {"_days", "days"},
	{"_pct", "percent"}, {"_percentage", "percent"}, {"_fraction", "ratio"},
	{"_kb", "kilobytes"}, {"_mb", "megabytes"}, {"_gb", "gigabytes"}, {"_tb", "terabytes"},
	{"_kib", "kibibytes"}, {"_mib", "mebibytes"}, {"_gib", "gibibytes"}, {"_tib", "tebibytes"},
	{"_kibibytes", "kibibytes"}, {"_mebibytes", "mebibytes"}, {"_gibibytes", "gibibytes"},
	{"_kilobytes", "kilobytes"}, {"_megabytes", "megabytes"}, {"_gigabytes", "gigabytes"},
	{"_mb_s", "mb/s"}, {"_gb_s", "gb/s"},
	{"_bytes_per_second", "bytes/s"}, {"_bytes_per_sec", "bytes/s"}, {"_bytes_per_s", "bytes/s"},
	{"_tokens_per_second", "tokens/s"}, {"_tokens_per_sec", "tokens/s"}, {"_tokens_per_s", "tokens/s"},
	{"_toks_per_s", "tokens/s"},
	{"_requests_per_second", "requests/s"}, {"_requests_per_sec", "requests/s"}, {"_requests_per_s", "requests/s"},
	{"_per_second", ""}, {"_per_sec", ""}, {"_per_s", ""}, // of something unknown: no seconds
	{"_watts", "watt"}, {"_milliwatts", "milliwatt"}, {"_joules", "joule"}, {"_millijoules", "millijoule"},
	{"_hertz", "hertz"}, {"_mhz", "megahertz"}, {"_ghz", "gigahertz"},
	{"_volts", "volts"}, {"_amperes", "amperes"}, {"_celsius", "celsius"}, {"_kelvin", "kelvin"},
	{"_ratio", "ratio"}, {"_percent", "percent"}, {"_perc", "percent"},
	{"_tokens", "tokens"}, {"_bytes", "bytes"}, {"_requests", "requests"}, {"_errors", "errors"}, {"_blocks", "blocks"},
})

// InferExtended returns the unit of a family where we know more than AIPerf or better, "" where its answer
// stands. declared is the unit of an OpenMetrics UNIT line, which counts first if it is a plain word; then, as
// in AIPerf, help counts before the name. The names of units are AIPerf's where it has one.
func InferExtended(name, help, declared string) string {
	unit := inferOwn(strings.ToLower(name), help, declared)
	if unit == Infer(name, help) {
		return ""
	}
	return unit
}

func inferOwn(name, help, declared string) string {
	if word.MatchString(declared) {
		return canonical(declared)
	}
	if unit, ok := byRange(help); ok {
		if unit == Number {
			return cmp.Or(nameUnit(name), unit)
		}
		return unit
	}
	if m := binaryTag.FindStringSubmatch(help); m != nil {
		return canonical(m[1])
	}
	if ratioOf.MatchString(help) && nameUnit(name) == "" {
		return "ratio" // DCGM writes "Ratio of ... (in %)" and sends 0 to 1
	}
	if unit := Infer("", help); unit != "" {
		return unit
	}
	for _, p := range ownPhrases {
		if p.pattern.MatchString(help) {
			return p.unit
		}
	}
	return cmp.Or(nameUnit(name), Infer(name, help))
}

func nameUnit(name string) string { return byEnding(ownEndings, strings.TrimSuffix(name, "_total")) }

// byRange reads a range from help: up to 1 it is a ratio, up to 100 a percentage;
// where AIPerf sees one that it is not, the values are plain numbers.
func byRange(help string) (unit string, ok bool) {
	inferred := Infer("", help)
	m := span.FindStringSubmatch(help)
	if m == nil || inferred != "ratio" && inferred != "percent" {
		return "", false
	}
	end, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	switch {
	case err != nil:
		return "", false
	case end == 100 || m[2] != "":
		return "percent", true
	case end == 1:
		return "ratio", true
	case inferred == "ratio":
		return Number, true
	}
	return "", false
}

// declaredNames are our names of units that servers declare in other words.
var declaredNames = map[string]string{
	"s": "seconds", "sec": "seconds", "second": "seconds", "ms": "milliseconds",
	"millisecond": "milliseconds", "us": "microseconds", "µs": "microseconds",
	"microsecond": "microseconds", "ns": "nanoseconds", "nanosecond": "nanoseconds",
	"byte": "bytes", "b": "bytes", "kib": "kibibytes", "mib": "mebibytes", "gib": "gibibytes",
	"tib": "tebibytes", "joules": "joule", "watts": "watt", "percents": "percent", "%": "percent",
	"ratios": "ratio", "1": "ratio",
}

// canonical returns our name of a declared unit; one we do not know stays as it is.
func canonical(declared string) string {
	lower := strings.ToLower(declared)
	return cmp.Or(declaredNames[lower], lower)
}
