package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source/triton"
)

// tritonFlags are how Triton's statistics are read.
type tritonFlags struct {
	ensembles []string
}

func (t *tritonFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&t.ensembles, "triton-ensemble", nil,
		"what a Triton ensemble is made of, a model for each step, `E=a,b` (repeatable; default what the server says)")
}

// parse reads the flags.
func (t *tritonFlags) parse() (map[string][]string, error) {
	out := map[string][]string{}
	for _, arg := range t.ensembles {
		name, list, ok := strings.Cut(arg, "=")
		if !ok || name == "" || list == "" {
			return nil, usagef("--triton-ensemble %q: want E=a,b", arg)
		}
		for step := range strings.SplitSeq(list, ",") {
			if step == "" || step == name {
				return nil, usagef("--triton-ensemble %q: a step is empty or the ensemble itself", arg)
			}
			out[name] = append(out[name], step)
		}
	}
	return out, nil
}

// tritonSource makes the source of a target triton+http:// or triton+grpc://.
func (o *collectOptions) tritonSource(t *scrape.Target) (*triton.Source, error) {
	ensembles, err := o.triton.parse()
	if err != nil {
		return nil, err
	}
	so := o.scrapeOptions()
	to := triton.Options{Header: t.Header, RoundTripper: t.RoundTripper, Redact: t.Redact, Ensembles: ensembles, Version: toolVersion(),
		Keep: keeper(so.Keep, so.Drop), Limits: triton.Limits{Body: o.limits.Body, Samples: o.limits.Samples, Series: o.limits.Series, ValueLength: o.limits.ValueLength}}
	if c, ok := t.RoundTripper.(*discover.Client); ok { // gRPC has a transport of its own
		to.TLS, to.Authorization = c.TLS(), c.Authorization
	}
	s, err := triton.New(t.URL, to)
	if err != nil {
		return nil, usagef("target %s: %w", t, err)
	}
	return s, nil
}

// keeper is what --keep and --drop let through.
func keeper(keep, drop *regexp.Regexp) func(string) bool {
	return func(name string) bool {
		return (keep == nil || keep.MatchString(name)) && (drop == nil || !drop.MatchString(name))
	}
}
