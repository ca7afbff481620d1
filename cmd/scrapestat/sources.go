package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source"
	"github.com/scrapestat/scrapestat/source/reqfile"
	"github.com/scrapestat/scrapestat/source/torchserve"
	"github.com/scrapestat/scrapestat/source/triton"
	"github.com/scrapestat/scrapestat/source/trtllm"
)

// kinds are the kinds of targets besides expositions: a new one is its package and a line here.
func kinds() []source.Kind {
	return []source.Kind{torchserve.Kind(), triton.Kind(), reqfile.Target(), trtllm.Kind()}
}

// kindsUsage is how the addresses of all kinds are written.
func kindsUsage() string {
	var b strings.Builder
	for _, k := range kinds() {
		b.WriteString(k.Usage)
	}
	return b.String()
}

// kindFlags is what opens the targets of each kind, by its flags.
type kindFlags struct {
	kinds   []source.Kind
	openers []source.Opener
}

// register adds the flags of all kinds; those that only a recording needs where the command records.
func (k *kindFlags) register(cmd *cobra.Command, recording bool) {
	k.kinds, k.openers = kinds(), nil
	for _, kind := range k.kinds {
		o := kind.New()
		registerOpener(cmd, o, recording)
		k.openers = append(k.openers, o)
	}
}

// registerOpener adds the flags of one kind.
func registerOpener(cmd *cobra.Command, o source.Opener, recording bool) {
	f := cmd.Flags()
	for _, flag := range o.Flags() {
		if flag.Recording && !recording {
			continue
		}
		switch v := flag.Value.(type) {
		case *bool:
			f.BoolVar(v, flag.Name, *v, flag.Usage)
		case *string:
			f.StringVar(v, flag.Name, *v, flag.Usage)
		case *[]string:
			f.StringArrayVar(v, flag.Name, *v, flag.Usage)
		}
	}
}

// warnings are of files of settings that everybody may change.
func (k *kindFlags) warnings() (out []metric.Warning) {
	for _, o := range k.openers {
		for _, flag := range o.Flags() {
			if path, ok := flag.Value.(*string); ok && flag.File {
				out = append(out, discover.WarnWorldWritable(*path)...)
			}
		}
	}
	return out
}

// readsStdin reports whether one of the targets does.
func (k *kindFlags) readsStdin(targets []string) bool {
	return slices.ContainsFunc(k.kinds, func(kind source.Kind) bool {
		return kind.Stdin != "" && slices.ContainsFunc(targets,
			func(t string) bool { return strings.HasSuffix(t, kind.Stdin) })
	})
}

// local reports whether a kind of targets reads files.
func (k *kindFlags) local(name string) bool {
	return slices.ContainsFunc(k.kinds, func(kind source.Kind) bool { return kind.Name == name && kind.Local })
}

// open gives a target that is no exposition its source.
func (k *kindFlags) open(t *scrape.Target, o source.Options, interval time.Duration) error {
	i := slices.IndexFunc(k.kinds, func(kind source.Kind) bool { return kind.Name == t.Kind })
	if i < 0 {
		return nil
	}
	if err := k.openers[i].Check(); err != nil {
		return usagef("%w", err)
	}
	if longest := k.kinds[i].Interval; longest > 0 {
		t.Interval = min(interval, longest)
	}
	o.Header, o.RoundTripper, o.Redact = t.Header, t.RoundTripper, t.Redact
	s, err := k.openers[i].Open(t.URL, o)
	if err != nil {
		return usagef("target %s: %w", t, err)
	}
	t.Source = s
	return nil
}

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
	given = o.shards.shard.Of(given)
	o.access.auth.Limits = o.limits
	if t.given, _, t.warnings, err = o.access.auth.Apply(given); err != nil {
		return t, usagef("%w", err)
	}
	if len(t.given) == 0 && !o.access.discovers() {
		t.warnings = append(t.warnings, metric.Warnf("shard_empty", "none of the targets is of shard %d of %d: the run is "+
			"empty", o.shards.shard.I, o.shards.shard.N))
	}
	t.warnings = append(t.warnings, o.remoteWrite.unsafe...)
	t.warnings = append(t.warnings, o.kinds.warnings()...)
	if err := o.openDiscoverers(t); err != nil {
		return t, err
	}
	return t, o.attachSources(t.given, std)
}

// openDiscoverers opens what --config and --kubernetes-inference-pods name.
func (o *collectOptions) openDiscoverers(t *targetSet) error {
	do := discover.Options{Refresh: o.access.refresh, DefaultInterval: o.interval, Limits: o.limits,
		TrustDiscovery: o.access.trust, Shard: o.shards.shard}
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
		d, err := discover.InferencePods(discover.InferenceOptions{Namespace: o.access.pods.namespace,
			Selector:   o.access.podLabels,
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
	so, l := o.scrapeOptions(), o.limits
	shared := source.Options{In: std.in, Keep: keeper(so.Keep, so.Drop), Version: toolVersion(),
		Body: l.Body, Samples: l.Samples, Series: l.Series, ValueLength: l.ValueLength}
	if o.served != nil {
		shared.Requests = o.served.Open
	}
	for i := range targets {
		if err := o.kinds.open(&targets[i], shared, o.interval); err != nil {
			return err
		}
	}
	return nil
}

// filterFlags choose families by name.
type filterFlags struct{ keep, drop string }

func (o *filterFlags) register(f *pflag.FlagSet, verb string) {
	f.StringVar(&o.keep, "keep", "", verb+" only metric families whose name matches this `regexp`")
	f.StringVar(&o.drop, "drop", "", "do not "+verb+" metric families whose name matches this `regexp`")
}

func (o *filterFlags) validate() error {
	for name, expr := range map[string]string{"keep": o.keep, "drop": o.drop} {
		if _, err := regexp.Compile(expr); err != nil {
			return usagef("--%s: %w", name, err)
		}
	}
	return nil
}

// filters are the expressions, which validate has compiled; nil when not given.
func (o *filterFlags) filters() (keep, drop *regexp.Regexp) {
	if o.keep != "" {
		keep = regexp.MustCompile(o.keep)
	}
	if o.drop != "" {
		drop = regexp.MustCompile(o.drop)
	}
	return keep, drop
}

// keeper is what --keep and --drop let through.
func keeper(keep, drop *regexp.Regexp) func(string) bool {
	return func(name string) bool {
		return (keep == nil || keep.MatchString(name)) && (drop == nil || !drop.MatchString(name))
	}
}
