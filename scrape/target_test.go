package scrape_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
	"github.com/scrapestat/scrapestat/source"
)

func TestParseTarget(t *testing.T) {
	check := func(arg, name, url, public string) {
		t.Helper()
		got, err := scrape.ParseTarget(arg)
		if err != nil {
			t.Errorf("%q: %v", arg, err)
			return
		}
		if public == "" {
			public = url
		}
		p := got.Public()
		if got.Name != name || got.URL != url || p.URL != public || p.Name != name || p.Source != "prometheus" {
			t.Errorf("%q: got %q %q, public %+v; want %q %q %q", arg, got.Name, got.URL, p, name, url, public)
		}
	}
	check("h:8000", "", "http://h:8000/metrics", "")
	check("http://h", "", "http://h/metrics", "")
	check("https://h:1/", "", "https://h:1/metrics", "")
	check("HTTPS://h:1/", "", "https://h:1/metrics", "")
	check("http://h:1/v1", "", "http://h:1/v1/metrics", "")
	check("http://h:1/v1/metrics///", "", "http://h:1/v1/metrics", "")
	check("http://h/metrics?name[]=a&x=b#f", "", "http://h/metrics?name[]=a&x=b", "")
	check("h:1?x=y", "", "http://h:1/metrics?x=y", "")
	check("prefill=http://10.0.0.3:8000", "prefill", "http://10.0.0.3:8000/metrics", "")
	check("a.b-c_1=h:1/x?y=z", "a.b-c_1", "http://h:1/x/metrics?y=z", "")
	check("entwurf ä=h", "entwurf ä", "http://h/metrics", "")
	check("[::1]:8000", "", "http://[::1]:8000/metrics", "")
	check("n=http://[fe80::1%25eth0]:8000/metrics", "n", "http://[fe80::1%25eth0]:8000/metrics", "")
	check("unix:///run/m.sock", "", "unix:///run/m.sock", "")
	check("s=unix:///run/a=b.sock", "s", "unix:///run/a=b.sock", "")
	check("http://me:p%40ss@h/metrics", "", "http://me:p%40ss@h/metrics", "http://h/metrics")
	check("me:p=x@h:80", "", "http://me:p=x@h:80/metrics", "http://h:80/metrics")
	check("h?token=abc&a=1&X-API-KEY=2", "", "http://h/metrics?token=abc&a=1&X-API-KEY=2",
		"http://h/metrics?token=xxxxx&a=1&X-API-KEY=xxxxx")
	check("h/a%2Fb", "", "http://h/a%2Fb/metrics", "")
	check(" h:1 ", "", "http://h:1/metrics", "")
}

// kinds are two kinds of targets: one of URLs, one of paths.
var kinds = []source.Kind{
	{Name: "triton", Prefixes: []string{"triton+", "tritons+"}},
	{Name: "torchserve-log", Prefixes: []string{"torchserve-log:"},
		Show: func(address string) string { return metric.Clean(address, 1024) },
		Check: func(address string) error {
			if address == "torchserve-log:" {
				return errors.New("wants a file")
			}
			return nil
		}},
}

// Other sources than expositions are told by their kind, and need a source.
func TestParseTargetKinds(t *testing.T) {
	check := func(arg, name, kind, public string) {
		t.Helper()
		got, err := scrape.ParseTarget(arg, kinds...)
		if p := got.Public(); err != nil || got.Name != name || got.Kind != kind || p.Source != kind || p.URL != public {
			t.Errorf("%q: got %+v, public %+v, %v", arg, got, p, err)
		}
		if _, err := scrape.New([]scrape.Target{got}, scrape.Options{}, discard{}); err == nil ||
			!strings.Contains(err.Error(), "no source of kind "+kind) {
			t.Errorf("%q without a source: got error %v", arg, err)
		}
	}
	check("t=triton+grpc://h:8001?model=M", "t", "triton", "triton+grpc://h:8001?model=M")
	check("triton+http://me:secret@h:8000", "", "triton", "triton+http://h:8000")
	check("t=torchserve-log:-", "t", "torchserve-log", "torchserve-log:-")
	check("torchserve-log:/var/log/*.log?", "", "torchserve-log", "torchserve-log:/var/log/*.log?")
}

type discard struct{}

func (discard) Record(*metric.Snapshot) error { return nil }

func TestParseTargetErrors(t *testing.T) {
	check := func(arg, want string) {
		t.Helper()
		got, err := scrape.ParseTarget(arg, kinds...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%q: got %q and error %v, want %q", arg, got.URL, err, want)
		}
	}
	check("", "empty")
	check("name=", "empty")
	check("=h:1", "name")
	check("a\x1bb=h:1", "name")
	check("torchserve-log:", "wants a file")
	check("ftp://h", `scheme "ftp"`)
	check("unix://rel.sock", "not absolute")
	check("unix:///dir/", "not absolute")
	check("::1", "host")
	check("fe80::1:8000", "brackets")
	check("http://", "no host")
	check("http:///metrics", "no host")
	check("h:", "port")
	check("h:0", "port")
	check("h:99999", "port")
	check("h:80x", "host:port")
	check("a b", "host")
	check("http://u:hunter2@h:bad", "no URL")
	check("http://[::zz]:1", "IPv6")
	if _, err := scrape.ParseTarget("http://u:hunter2@h:bad"); strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error shows a secret: %v", err)
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"h:1", "n=http://h/x?y=z", "unix:///a", "[::1]:1", "http://u:p@h", "triton+http://h",
		"%", "a=b=c", "http://h/%2F/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		got, err := scrape.ParseTarget(arg, kinds...)
		if err != nil || got.Kind != "" {
			return
		}
		again, err := scrape.ParseTarget(got.URL)
		if err != nil || again.URL != got.URL {
			t.Errorf("%q becomes %q, which becomes %q (%v)", arg, got.URL, again.URL, err)
		}
		if _, err := scrape.New([]scrape.Target{got}, scrape.Options{}, newRecording(t, 1)); err != nil {
			t.Errorf("%q: %v", arg, err)
		}
	})
}
