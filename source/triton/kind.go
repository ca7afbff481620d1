package triton

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/scrapestat/scrapestat/source"
)

// Kind is Triton's statistics extension as targets: triton+http://host:8000 and its variants.
func Kind() source.Kind {
	return source.Kind{Name: "triton", Prefixes: []string{"triton+", "tritons+"},
		Usage: "  triton+http://host:8000, triton+grpc://host:8001, triton+https, triton+grpcs\n" +
			"                       statistics of Triton, optionally with ?model=M&version=V\n",
		New: func() source.Opener { return &Flags{} }}
}

// Flags is how statistics are read, as a command line has it.
type Flags struct {
	ensembles []string
	parsed    map[string][]string // by Check
}

// Flags implements source.Opener.
func (f *Flags) Flags() []source.Flag {
	return []source.Flag{{Name: "triton-ensemble", Value: &f.ensembles,
		Usage: "what a Triton ensemble is made of, a model for each step, `E=a,b` " +
			"(repeatable; default what the server says)"}}
}

// Check implements source.Opener.
func (f *Flags) Check() error {
	f.parsed = map[string][]string{}
	for _, arg := range f.ensembles {
		name, list, ok := strings.Cut(arg, "=")
		if !ok || name == "" || list == "" {
			return fmt.Errorf("--triton-ensemble %q: want E=a,b", arg)
		}
		for step := range strings.SplitSeq(list, ",") {
			if step == "" || step == name {
				return fmt.Errorf("--triton-ensemble %q: a step is empty or the ensemble itself", arg)
			}
			f.parsed[name] = append(f.parsed[name], step)
		}
	}
	return nil
}

// Ensembles returns what Check has read.
func (f *Flags) Ensembles() map[string][]string { return f.parsed }

// Open implements source.Opener.
func (f *Flags) Open(address string, so source.Options) (source.Source, error) {
	o := Options{Header: so.Header, RoundTripper: so.RoundTripper, Redact: so.Redact, Ensembles: f.parsed,
		Version: so.Version, Keep: so.Keep,
		Limits: Limits{Body: so.Body, Samples: so.Samples, Series: so.Series, ValueLength: so.ValueLength}}
	// gRPC has a transport of its own.
	if c, ok := so.RoundTripper.(interface {
		TLS() *tls.Config
		Authorization(context.Context) (string, error)
	}); ok {
		o.TLS, o.Authorization = c.TLS(), c.Authorization
	}
	s, err := New(address, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}
