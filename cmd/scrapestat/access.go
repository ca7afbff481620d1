package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/metric"
)

// authFlags are how servers are asked: authentication and transport. It is the
// one group of such flags; each command that asks a server has it.
type authFlags struct {
	headers headerFlag
	auth    discover.Auth
}

// register adds the flags, each name beginning with prefix. who is what the servers are to the command.
func (a *authFlags) register(f *pflag.FlagSet, prefix, who string) {
	a.auth.Prefix, a.auth.Who = prefix, who
	f.Var(&a.headers, prefix+"header", "send this header with each request to "+who+", as `'Name: value'`; the value "+
		"is kept out of all outputs (repeatable)")
	f.StringVar(&a.auth.BearerTokenFile, prefix+"bearer-token-file", "",
		"send the token in this `file` to "+who+", read again for each request")
	f.StringVar(&a.auth.BasicAuthFile, prefix+"basic-auth-file", "",
		"send the USER:PASSWORD in this `file` to "+who+", read again for each request")
	f.StringVar(&a.auth.CAFile, prefix+"tls-ca", "",
		"trust the certificate authorities in this PEM `file` instead of the system's")
	f.StringVar(&a.auth.CertFile, prefix+"tls-cert", "", "client certificate, a PEM `file`")
	f.StringVar(&a.auth.KeyFile, prefix+"tls-key", "", "key of --"+prefix+"tls-cert, a PEM `file`")
	f.StringVar(&a.auth.ServerName, prefix+"tls-server-name", "",
		"`name` that the certificates of "+who+" must have, instead of the host of the address")
	f.BoolVar(&a.auth.InsecureSkipVerify, prefix+"insecure-skip-verify", false,
		"do not verify certificates; the report says so")
	f.BoolVar(&a.auth.ProxyFromEnvironment, prefix+"proxy-from-environment", false,
		"ask through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name (default: directly)")
}

// parse reads the headers.
func (a *authFlags) parse() error {
	a.auth.Headers = nil
	for i, raw := range a.headers.raw {
		h, err := discover.ParseHeader(raw)
		if err != nil {
			return usagef("--%sheader number %d: %w", a.auth.Prefix, i+1, err)
		}
		a.auth.Headers = append(a.auth.Headers, h)
	}
	return nil
}

// open returns what requests to one server that is no target are sent with.
func (a *authFlags) open() (http.Header, *discover.Client, []metric.Warning, error) {
	if err := a.parse(); err != nil {
		return nil, nil, nil, err
	}
	header, c, w, err := a.auth.Open()
	if err != nil {
		return nil, nil, nil, usagef("%w", err)
	}
	return header, c, w, nil
}

// accessFlags is how targets are reached and found: authentication, transport and discovery.
type accessFlags struct {
	authFlags
	config    string
	pods      podsFlag
	podLabels string
	kube      string
	refresh   time.Duration
	trust     bool
}

func (a *accessFlags) register(f *pflag.FlagSet) {
	a.authFlags.register(f, "", "the targets")
	f.StringVar(&a.config, "config", "",
		"take targets from the scrape_configs of this Prometheus configuration `file` too")
	f.Var(&a.pods, "kubernetes-inference-pods",
		"take the inference pods of this `namespace` as targets, * for all, without a value the own one, by the rules "+
			"of AIPerf")
	f.Lookup("kubernetes-inference-pods").NoOptDefVal = ownNamespace
	f.StringVar(&a.podLabels, "kubernetes-selector", "",
		"label `selector` for --kubernetes-inference-pods; all pods it selects count as inference pods")
	f.StringVar(&a.kube, "kubeconfig", "", "kubeconfig `file` for --kubernetes-inference-pods (default: the cluster "+
		"this runs in, KUBECONFIG, ~/.kube/config)")
	f.DurationVar(&a.refresh, "discovery-interval", 0,
		"time between two looks for changed targets (default 1s for files, the refresh_interval of others or 30s)")
	f.BoolVar(&a.trust, "trust-discovery", false,
		"send the credentials of a job of --config to every host that its http_sd lists, as Prometheus does")
}

// validate refuses settings that cannot work.
func (a *accessFlags) validate() error {
	if err := a.parse(); err != nil {
		return err
	}
	if a.refresh < 0 {
		return usagef("--discovery-interval %v is negative", a.refresh)
	}
	if !a.pods.given && (a.podLabels != "" || a.kube != "") {
		return usagef("--kubernetes-selector and --kubeconfig need --kubernetes-inference-pods")
	}
	return nil
}

// discovers reports whether targets come from elsewhere than the arguments.
func (a *accessFlags) discovers() bool { return a.config != "" || a.pods.given }

// headerFlag keeps headers as they were given. It never prints a value and never
// refuses one: the flag library would repeat it in its message.
type headerFlag struct{ raw []string }

func (h *headerFlag) Set(v string) error {
	h.raw = append(h.raw, v)
	return nil
}

func (h *headerFlag) Type() string { return "header" }

func (h *headerFlag) String() string {
	if h == nil || len(h.raw) == 0 {
		return ""
	}
	return fmt.Sprint(discover.NewSecret(""))
}

// ownNamespace is the value of --kubernetes-inference-pods without one.
const ownNamespace = "own"

// podsFlag is a namespace that may be left out.
type podsFlag struct {
	given     bool
	namespace string
}

func (p *podsFlag) Set(v string) error {
	p.given, p.namespace = true, v
	if v == ownNamespace {
		p.namespace = ""
	}
	return nil
}

func (p *podsFlag) Type() string { return "namespace" }

func (p *podsFlag) String() string {
	if p == nil || !p.given {
		return ""
	}
	if p.namespace == "" {
		return ownNamespace
	}
	return p.namespace
}
