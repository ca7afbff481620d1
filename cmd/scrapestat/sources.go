package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source/torchserve"
)

// torchserveFlags are how TorchServe's metric logs are read.
type torchserveFlags struct {
	yaml      string
	buckets   []string
	fromStart bool
	raw       bool
	double    bool
	subtract  bool
}

func (t *torchserveFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	t.registerReading(cmd)
	f.BoolVar(&t.subtract, "torchserve-subtract-self", false, "take our own scrapes off TorchServe's counter Requests2XX, which counts them")
	f.BoolVar(&t.fromStart, "torchserve-from-start", false, "also take what TorchServe logs hold when the run begins")
}

// registerReading adds the flags that an import has too.
func (t *torchserveFlags) registerReading(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.yaml, "torchserve-metrics-yaml", "", "metrics.yaml of the TorchServe whose logs are read, a `file`; it says what is a counter (default TorchServe's own)")
	f.StringArrayVar(&t.buckets, "torchserve-buckets", nil, "bounds of a TorchServe histogram, `NAME=B1,B2,...` (repeatable)")
	f.BoolVar(&t.raw, "torchserve-raw-backend", false, "take the [METRICS] lines that TorchServe workers print themselves")
	f.BoolVar(&t.double, "torchserve-double", false, "count TorchServe events again that stand in several of the logs")
}

// options reads what the flags name.
func (t *torchserveFlags) options(maxSeries int) (torchserve.Options, error) {
	o := torchserve.Options{FromStart: t.fromStart, Raw: t.raw, Double: t.double, MaxSeries: maxSeries, Buckets: map[string][]float64{}}
	for _, arg := range t.buckets {
		name, list, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return o, usagef("--torchserve-buckets %q: want NAME=B1,B2,...", arg)
		}
		for text := range strings.SplitSeq(list, ",") {
			bound, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				return o, usagef("--torchserve-buckets %q: %q is no number", arg, text)
			}
			o.Buckets[name] = append(o.Buckets[name], bound)
		}
	}
	if t.yaml == "" {
		return o, nil
	}
	file, err := os.Open(t.yaml)
	if err != nil {
		return o, usagef("--torchserve-metrics-yaml: %w", err)
	}
	defer file.Close() // read only
	if o.Specs, err = torchserve.ReadSpecs(file); err != nil {
		return o, usagef("--torchserve-metrics-yaml %s: %w", t.yaml, err)
	}
	return o, nil
}

// maxLogInterval is how long a line of a log may wait to be read.
const maxLogInterval = 200 * time.Millisecond

// targetSet is all that the targets of a command line come from.
type targetSet struct {
	given       []scrape.Target
	discoverers []*discover.Discoverer
	warnings    []metric.Warning
}

// close closes what a session did not take over.
func (t *targetSet) close() {
	for _, d := range t.discoverers {
		d.Close()
	}
	for _, x := range t.given {
		x.Close()
	}
}

// openTargets prepares the given targets and opens what others come from.
func (o *collectOptions) openTargets(std stdio) (t *targetSet, err error) {
	t = &targetSet{}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	given, err := o.parseTargets()
	if err != nil {
		return t, err
	}
	o.access.auth.Limits = o.limits
	if t.given, _, t.warnings, err = o.access.auth.Apply(given); err != nil {
		return t, usagef("%w", err)
	}
	t.warnings = append(t.warnings, o.remoteWrite.unsafe...)
	t.warnings = append(t.warnings, discover.WarnWorldWritable(o.torchserve.yaml)...)
	if err := o.openDiscoverers(t); err != nil {
		return t, err
	}
	return t, o.attachSources(t.given, std)
}

// openDiscoverers opens what --config and --kubernetes-inference-pods name.
func (o *collectOptions) openDiscoverers(t *targetSet) error {
	do := discover.Options{Refresh: o.access.refresh, DefaultInterval: o.interval, Limits: o.limits}
	if o.intervalGiven {
		do.Interval = o.interval
	}
	if o.timeoutGiven {
		do.Timeout = o.timeout
	}
	if o.access.config != "" {
		d, err := discover.Load(o.access.config, do)
		if err != nil {
			return usagef("--config: %w", err)
		}
		t.discoverers = append(t.discoverers, d)
	}
	if o.access.pods.given {
		d, err := discover.InferencePods(discover.InferenceOptions{Namespace: o.access.pods.namespace, Selector: o.access.podLabels,
			Kubeconfig: o.access.kube}, do)
		if err != nil {
			return usagef("--kubernetes-inference-pods: %w", err)
		}
		t.discoverers = append(t.discoverers, d)
	}
	return nil
}

// attachSources gives targets that are no expositions their source.
func (o *collectOptions) attachSources(targets []scrape.Target, std stdio) error {
	for i := range targets {
		t := &targets[i]
		var err error
		switch t.Kind {
		case "torchserve-log":
			t.Source, err = o.torchserveSource(t, std)
			t.Interval = min(o.interval, maxLogInterval)
		case "triton":
			t.Source, err = o.tritonSource(t)
		}
		if err != nil {
			t.Source = nil
			return err
		}
	}
	return nil
}

func (o *collectOptions) torchserveSource(t *scrape.Target, std stdio) (*torchserve.Source, error) {
	to, err := o.torchserve.options(o.limits.Series)
	so := o.scrapeOptions()
	to.Keep, to.Drop = so.Keep, so.Drop
	if err != nil {
		return nil, err
	}
	path := strings.TrimPrefix(t.URL, "torchserve-log:")
	var s *torchserve.Source
	if path == "-" {
		s, err = torchserve.FollowStream(std.in, to)
	} else {
		s, err = torchserve.Follow(path, to)
	}
	if err != nil {
		return nil, usagef("target %s: %w", t, fmt.Errorf("open log: %w", err))
	}
	return s, nil
}
