package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/collect"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source/promstore"
	"github.com/scrapestat/scrapestat/window"
)

const collectLong = `Polls every TARGET until --duration passes, COMMAND exits, or a signal arrives;
then takes a final scrape of each, writes the exports and prints a summary.

TARGET is [NAME=]ADDRESS; ADDRESS is host:port, http://host:port[/path],
https://..., unix:///path/to.sock, or one of

%s
NAME is a stable alias that matches the endpoint between runs. The word auto is what
COMMAND itself loads: of vllm bench serve, aiperf, guidellm, inference-perf and sglang.bench_serving.`

const collectExample = `  scrapestat collect localhost:8000 --duration 5m
  scrapestat collect prefill=http://10.0.0.3:8000 decode=http://10.0.0.4:8000 --warmup 30s -o run1 -- \
      vllm bench serve --num-prompts 500
  scrapestat collect auto -- vllm bench serve --base-url http://10.0.0.3:8000`

// collectOptions is the command line of collect.
type collectOptions struct {
	targets []string
	command []string
	grace   time.Duration // of command, once it is told to end; 0 is 10 s
	flags   []string      // as given, for the manifest

	out           string
	force         bool
	interval      time.Duration
	importPattern string // of --import-requests
	told          string // about the targets that COMMAND names
	intervalGiven bool   // on the command line, as timeoutGiven
	timeoutGiven  bool
	timeout       time.Duration
	duration      time.Duration
	warmup        time.Duration
	cooldown      time.Duration
	settle        time.Duration
	tags          map[string]string
	tagGit        bool
	store         string // of --store-command
	filterFlags
	limits       scrape.Limits
	maxRecording int64
	maxPending   int
	maxShare     float64
	compress     bool
	protocols    []string
	quiet        bool
	kinds        kindFlags
	subtract     bool
	access       accessFlags
	shards       shardFlags
	analysis     analysisFlags
	require      string        // requireAll, requireAny or requireNone
	requireGiven bool          // on the command line
	wait         time.Duration // for targets that do not answer yet
	waitTraffic  time.Duration // for a first request
	client       time.Duration // between polls of COMMAND's processes
	window       string

	remoteWrite  remoteWriteFlags
	remoteWriter *promstore.RemoteWriter // of remoteWrite, opened by validate; nil without
	listen       string
	readyFile    string
	live         string // liveAuto, liveOn or liveOff
	requests     string // FILE or -: lines about requests
	proxy        string // ADDRESS=URL
	proxyFlags   proxyFlags
	otlp         string // HOST:PORT
	served       *collect.TargetFeeds
}

// otlpSettle is --settle with --otlp: exporters send their last batch after five seconds.
const otlpSettle = 7 * time.Second

func newCollectCmd(std stdio) *cobra.Command {
	o := collectOptions{served: &collect.TargetFeeds{}}
	cmd := &cobra.Command{
		Use:     "collect [flags] TARGET... [-- COMMAND [ARG...]]",
		Short:   "Record targets while a benchmark runs, then write the exports",
		Long:    fmt.Sprintf(collectLong, kindsUsage()),
		Example: collectExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.targets, o.command = args, nil
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				o.targets, o.command = args[:dash], args[dash:]
			}
			var err error
			if o.targets, o.told, err = expandAuto(o.targets, o.command); err != nil {
				return err
			}
			o.flags = givenFlags(cmd)
			o.intervalGiven, o.timeoutGiven = cmd.Flags().Changed("interval"), cmd.Flags().Changed("timeout")
			if o.otlp != "" && !cmd.Flags().Changed("settle") {
				o.settle = otlpSettle
			}
			o.requireGiven = cmd.Flags().Changed("require-targets")
			if err := o.validate(); err != nil {
				return err
			}
			if o.tagGit {
				if o.tags, err = gitTags(cmd.Context(), o.tags); err != nil {
					return err
				}
			}
			return runCollect(cmd.Context(), o, std)
		},
	}
	o.register(cmd)
	return cmd
}

func (o *collectOptions) register(cmd *cobra.Command) {
	groupFlags(cmd, []flagGroup{
		{"Run", o.registerRun},
		{"Scrape", o.registerScrapes},
		{"Access and discovery", func(cmd *cobra.Command) {
			o.access.register(cmd.Flags())
			o.shards.register(cmd.Flags())
		}},
		{"Request", o.registerRequests},
		{"Analysis and export", o.analysis.register},
		{"Remote-write", o.remoteWrite.register},
		{"TorchServe and Triton", o.registerKinds},
		{"Limit", o.registerLimits},
	})
}

func (o *collectOptions) registerRun(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.out, "out", "o", "",
		"run `directory`; refused when it exists unless --force (default runs/<UTC time>)")
	f.BoolVar(&o.force, "force", false, "replace the run in an existing directory")
	f.DurationVar(&o.duration, "duration", 0,
		"stop after this much profiling, warm-up not counted (default: until COMMAND exits or a signal)")
	f.DurationVar(&o.waitTraffic, "wait-traffic", 0, "how long to wait for a first request before --duration begins")
	f.DurationVar(&o.warmup, "warmup", 0, "recorded from the first request on, excluded from statistics")
	f.DurationVar(&o.cooldown, "cooldown", 0, "the last part before the end: recorded, excluded from statistics")
	f.StringVar(&o.window, "window", "", "the `part` that is analysed, also later: traffic, segments, command or "+
		"recording (default the load generator's phases, else traffic)")
	f.DurationVar(&o.settle, "settle", 2*time.Second,
		"keep scraping this long after COMMAND ends, so that late observations land; 0 disables")
	f.DurationVar(&o.client, "client-interval", time.Second,
		"time between polls of the CPU, memory, threads and descriptors of COMMAND and its host; 0 disables")
	f.StringVar(&o.store, "store-command", storeRedacted,
		"`how` the command line and the tags are kept: full, redacted (what looks like a secret is left out), or none")
	f.StringToStringVar(&o.tags, "tag", nil, "run tag `K=V`, kept in the manifest and the exports (repeatable)")
	f.BoolVar(&o.tagGit, "tag-git", false, "set the tags git.commit and git.branch to those of the working directory")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress and no talk on stderr")
	f.StringVar(&o.require, "require-targets", requireAny, "`how many` given targets must answer before COMMAND starts: "+
		"all, any or none; too few end with exit code 5")
	f.DurationVar(&o.wait, "wait", 0, "how long servers that do not answer yet may load before COMMAND starts")
	f.StringVar(&o.readyFile, "ready-file", "", "write this `file`, as JSON, when every target was scraped once, for a "+
		"program that waits for it")
	f.StringVar(&o.listen, "listen", "", "serve a status page, /metrics of the collector and POST /mark at this "+
		"`address`; a port alone is on loopback, 0 chooses one")
	f.StringVar(&o.live, "live", liveAuto, "full-screen live view on a terminal, `when`: auto (unless COMMAND writes "+
		"to it), on (its output waits for the end) or off (one line now and then)")
}

func (o *collectOptions) registerScrapes(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&o.interval, "interval", 333*time.Millisecond, "time between scrapes of one target")
	o.filterFlags.register(f, "record")
	f.Float64Var(&o.maxShare, "scrape-budget", 2,
		"back off when a target spends more than this `percent` of its time answering scrapes; 0 disables")
	f.BoolVar(&o.compress, "compress", false, "ask targets for gzip (compressing costs the measured server)")
	f.StringSliceVar(&o.protocols, "protocols", []string{"text", "openmetrics"},
		"formats to ask targets for, the preferred one first, of text, openmetrics and protobuf, or Prometheus' names "+
			"of scrape_protocols; native histograms need protobuf first")
}

func (o *collectOptions) registerKinds(cmd *cobra.Command) {
	o.kinds.register(cmd, true)
	cmd.Flags().BoolVar(&o.subtract, "torchserve-subtract-self", false,
		"take our own scrapes off TorchServe's counter of answers, which counts them")
}

func (o *collectOptions) registerRequests(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.requests, "requests", "",
		"record lines about requests from this `file`, a FIFO or - for stdin, as requests record does")
	f.StringVar(&o.importPattern, "import-requests", "", "import the requests of the newest file that matches this "+
		"`pattern` (** is any directories) and that COMMAND wrote, with the phases of AIPerf")
	f.StringVar(&o.proxy, "proxy", "", "also record the requests that clients send to this `ADDRESS=URL` of ours and "+
		"a server; see requests proxy")
	o.proxyFlags.register(f, "proxy-")
	f.StringVar(&o.otlp, "otlp", "", "take the traces that servers send of their requests over OTLP, gRPC and HTTP, at "+
		"this `address`; a port alone is on loopback; --settle is 7s then")
	f.BoolVar(&o.proxyFlags.options.NoTraceparent, "no-traceparent", false,
		"with --otlp and --proxy: do not give requests a traceparent, by which the server's trace of each is found")
}

// registerLimits adds what bounds the answers of a target. Each hit is counted
// and named with the flag that raises the limit.
func (o *collectOptions) registerLimits(cmd *cobra.Command) {
	f, l := cmd.Flags(), &o.limits
	f.DurationVar(&o.timeout, "timeout", 0, "deadline of a whole scrape (default the larger of 5s and the interval)")
	f.DurationVar(&l.Connect, "connect-timeout", 2*time.Second, "deadline of making a connection")
	f.Int64Var(&l.Body, "max-body", 64<<20, "largest body of a scrape, in `bytes` after decompression")
	f.Int64Var(&l.Compressed, "max-compressed-body", 16<<20, "largest compressed body of a scrape, in `bytes`")
	f.Int64Var(&l.Header, "max-headers", 64<<10, "largest head of an answer, in `bytes`")
	f.IntVar(&l.ErrorBody, "max-error-body", 512,
		"how much of the body of an error is repeated in its message, in `bytes`")
	f.IntVar(&l.Redirects, "max-redirects", 3, "most redirects of a scrape, within its origin; others are always refused")
	f.IntVar(&l.Samples, "max-samples", 500_000, "most samples of a scrape")
	f.IntVar(&l.Families, "max-families", 20_000, "most metric families of a target over the run, also those that have "+
		"no samples")
	f.IntVar(&l.Series, "max-series", 1_000_000, "most series of a target over the run; each bucket counts")
	f.IntVar(&l.Labels, "max-labels", 128, "most labels of a series")
	f.IntVar(&l.NameLength, "max-name-length", 1024, "longest metric or label name, in bytes")
	f.IntVar(&l.ValueLength, "max-value-length", 16<<10, "longest label value, in bytes")
	f.IntVar(&l.Buckets, "max-buckets", 5000, "most buckets of a histogram")
	f.IntVar(&l.NativeBuckets, "max-native-buckets", 10_000,
		"most populated buckets of a native histogram in one scrape; twice as many over the run")
	f.Int64Var(&o.maxRecording, "max-recording", 2<<30,
		"size of the recording, in `bytes`, beyond which it keeps no bodies of answers; samples it always keeps")
	f.IntVar(&o.maxPending, "max-pending", 256<<20, "how many `bytes` wait in memory while the recording cannot be "+
		"written; beyond it the oldest scrapes are dropped")
}

// validate refuses a command line that cannot work, before anything is touched.
func (o *collectOptions) validate() error {
	if err := o.access.validate(); err != nil {
		return err
	}
	if err := first(o.shards.validate(), o.validateTargets()); err != nil {
		return err
	}
	if o.interval < time.Millisecond || o.interval > 5*time.Minute {
		return usagef("--interval %v is outside 1ms to 5m", o.interval)
	}
	o.timeout = cmp.Or(o.timeout, min(max(5*time.Second, o.interval), time.Minute))
	if o.timeout < 0 || o.timeout > time.Minute {
		return usagef("--timeout %v is outside 0 to 1m", o.timeout)
	}
	if err := notNegative(map[string]time.Duration{"duration": o.duration, "warmup": o.warmup, "cooldown": o.cooldown,
		"settle": o.settle, "wait-traffic": o.waitTraffic, "client-interval": o.client}); err != nil {
		return err
	}
	if o.waitTraffic > 0 && o.duration == 0 {
		return usagef("--wait-traffic %v: there is no --duration that could begin with the first request", o.waitTraffic)
	}
	if o.duration > 0 && o.cooldown >= o.duration {
		return usagef("--cooldown %v leaves nothing of --duration %v", o.cooldown, o.duration)
	}
	if err := o.validateLimits(); err != nil {
		return err
	}
	if o.maxShare < 0 {
		return usagef("--scrape-budget %v is negative", o.maxShare)
	}
	if _, err := scrape.AcceptHeader(o.protocols); err != nil {
		return usagef("--protocols: %w", err)
	}
	if err := o.filterFlags.validate(); err != nil {
		return err
	}
	if o.requests == "-" && len(o.command) > 0 {
		return usagef("--requests - takes the stdin that COMMAND would read: give the lines in a file or a FIFO")
	}
	if o.listen != "" {
		if _, err := listenAddress(o.listen); err != nil {
			return err
		}
	}
	if err := o.validateWords(); err != nil {
		return err
	}
	if err := cmp.Or(o.validateProxy(), o.validateOTLP()); err != nil {
		return err
	}
	var err error
	if o.remoteWriter, err = o.remoteWrite.open(); err != nil {
		return err
	}
	return o.analysis.validate()
}

// validateWords refuses values of flags that are none of their words.
func (o *collectOptions) validateWords() error {
	if o.window != "" && !slices.Contains([]window.What{window.Traffic, window.Segments, window.Command,
		window.Recording}, window.What(o.window)) {
		return usagef("--window %q: want traffic, segments, command or recording", o.window)
	}
	if o.store != storeFull && o.store != storeRedacted && o.store != storeNone {
		return usagef("--store-command %q: want full, redacted or none", o.store)
	}
	if o.live != liveAuto && o.live != liveOn && o.live != liveOff {
		return usagef("--live %q: want auto, on or off", o.live)
	}
	if o.importPattern != "" && len(o.command) == 0 {
		return usagef("--import-requests %s: there is no COMMAND that writes a file", o.importPattern)
	}
	return checkPattern(o.importPattern)
}

// validateLimits refuses limits that are none.
func (o *collectOptions) validateLimits() error {
	if o.limits.Connect <= 0 {
		return usagef("--connect-timeout %v: a limit must be positive", o.limits.Connect)
	}
	if o.limits.Redirects < 0 {
		return usagef("--max-redirects %d is negative", o.limits.Redirects)
	}
	if err := o.analysis.memory.validate(); err != nil {
		return err
	}
	o.limits.Memory = o.analysis.memory.bytes
	limits := o.limits.ByFlag()
	limits["max-recording"], limits["max-pending"] = o.maxRecording, int64(o.maxPending)
	for name, limit := range limits {
		if limit < 1 && name != "max-redirects" {
			return usagef("--%s %d: a limit must be positive", name, limit)
		}
	}
	return nil
}

// parseTargets turns the arguments into targets; the same address twice is one target.
func (o *collectOptions) parseTargets() ([]scrape.Target, error) {
	var targets []scrape.Target
	var seen []string
	for _, arg := range o.targets {
		t, err := scrape.ParseTarget(arg, o.kinds.kinds...)
		if err != nil {
			return nil, usagef("target %q: %w", redactArgs([]string{arg})[0], err)
		}
		if id := t.Public().URL; !slices.Contains(seen, id) {
			if t.Name != "" && slices.ContainsFunc(targets, func(u scrape.Target) bool { return u.Name == t.Name }) {
				return nil, usagef("target %q: the name %q is that of another target; comparisons match targets by name",
					redactArgs([]string{arg})[0], t.Name)
			}
			seen = append(seen, id)
			targets = append(targets, t)
		}
	}
	return targets, nil
}

// givenFlags lists the flags that were given, by name. Of headers only that there
// were some: any of them may be a secret, as may the query of an address.
func givenFlags(cmd *cobra.Command) []string {
	var out []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if strings.HasSuffix(f.Name, "header") {
			out = append(out, "--"+f.Name+"="+redacted)
			return
		}
		if f.Name == "remote-write" {
			out = append(out, "--"+f.Name+"="+redactedOrNone(f.Value.String()))
			return
		}
		out = append(out, fmt.Sprintf("--%s=%s", f.Name, strings.Trim(f.Value.String(), "[]")))
	})
	return out
}
