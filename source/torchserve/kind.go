package torchserve

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source"
)

// scheme is what addresses of logs begin with.
const scheme = "torchserve-log:"

// Kind is TorchServe's metric logs as targets: torchserve-log:PATH.
func Kind() source.Kind {
	return source.Kind{
		Name: "torchserve-log", Prefixes: []string{scheme}, Stdin: scheme + "-", Local: true,
		Interval: 200 * time.Millisecond,
		Usage: "  torchserve-log:PATH  metric logs of TorchServe: a file, a folder, a pattern, or -\n" +
			"                       for stdin\n",
		Check: func(address string) error {
			if len(address) == len(scheme) || len(address) > 4096 {
				return errors.New("torchserve-log: wants a file, a folder, a pattern, or - for stdin")
			}
			return nil
		},
		// A path, not a URL.
		Show: func(address string) string { return scheme + metric.Clean(address[len(scheme):], 1024) },
		New:  func() source.Opener { return &Flags{} },
	}
}

// Flags is how logs are read, as a command line has it.
type Flags struct {
	yaml      string
	buckets   []string
	fromStart bool
	workers   bool
	double    bool

	options Options // of the above, by Check
}

// Flags implements source.Opener.
func (f *Flags) Flags() []source.Flag {
	return []source.Flag{
		{Name: "torchserve-metrics-yaml", Value: &f.yaml, File: true,
			Usage: "metrics.yaml of the TorchServe whose logs are read, a `file`; it says what is a counter (default " +
				"TorchServe's own)"},
		{Name: "torchserve-buckets", Value: &f.buckets, Usage: "bounds of a TorchServe histogram, `NAME=B1,B2,...` " +
			"(repeatable)"},
		{Name: "torchserve-worker-lines", Value: &f.workers,
			Usage: "take the [METRICS] lines that TorchServe workers print " +
				"themselves"},
		{Name: "torchserve-keep-duplicates", Value: &f.double,
			Usage: "count TorchServe events again that stand in several of the logs"},
		{Name: "torchserve-from-start", Value: &f.fromStart, Recording: true, Usage: "also take what TorchServe logs hold " +
			"when the run begins"},
	}
}

// Check implements source.Opener.
func (f *Flags) Check() (err error) {
	f.options, err = f.parse()
	return err
}

// Options returns what Check has read.
func (f *Flags) Options() Options { return f.options }

func (f *Flags) parse() (Options, error) {
	o := Options{FromStart: f.fromStart, Raw: f.workers, Double: f.double, Buckets: map[string][]float64{}}
	for _, arg := range f.buckets {
		name, list, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return o, fmt.Errorf("--torchserve-buckets %q: want a name and its bounds, NAME=B1,B2", arg)
		}
		for text := range strings.SplitSeq(list, ",") {
			bound, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				return o, fmt.Errorf("--torchserve-buckets %q: %q is no number", arg, text)
			}
			o.Buckets[name] = append(o.Buckets[name], bound)
		}
	}
	if f.yaml == "" {
		return o, nil
	}
	file, err := os.Open(f.yaml)
	if err != nil {
		return o, fmt.Errorf("--torchserve-metrics-yaml: %w", err)
	}
	defer file.Close() // read only
	if o.Specs, err = ReadSpecs(file); err != nil {
		return o, fmt.Errorf("--torchserve-metrics-yaml %s: %w", f.yaml, err)
	}
	return o, nil
}

// Open implements source.Opener.
func (f *Flags) Open(address string, so source.Options) (source.Source, error) {
	o := f.options
	o.MaxSeries, o.Keep = so.Series, so.Keep
	path := address[len(scheme):]
	var s *Source
	var err error
	if path == "-" {
		s, err = FollowStream(so.In, o)
	} else {
		s, err = Follow(path, o)
	}
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return s, nil
}
