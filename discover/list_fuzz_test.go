package discover_test

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
)

// FuzzLists reads lists of targets as strangers may write them: those that come
// of it have an address that can be asked, and none is a metadata service.
func FuzzLists(f *testing.F) {
	for _, s := range []string{
		`[{"targets":["h:1","[fd00::1]:2"],"labels":{"__scheme__":"https","__metrics_path__":"/x?y","__param_a":"b",` +
			`"zone":"z"}}]`,
		`[{"targets":["169.254.169.254:80","unix:///run/x","a b","h:99999","u@h:1","h/../:1","[fe80::1%25lo]:1"]}]`,
		`[{"targets":["h:1"],"labels":{"__address__":"169.254.169.254:80","__scrape_interval__":"0s","__scheme__":"file"}}]`,
		"- targets: [&a 'h:1', *a]\n  labels: {a: b, 1: 2}\n", "[null]", "a: &a [*a]",
		`[{"targets":[null],"labels":{"":""}}]`, "\xff", "[{}]"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, text string, isJSON bool) {
		defer fuzzbound.Check(t)()
		dir := t.TempDir()
		name := map[bool]string{true: "t.json", false: "t.yml"}[isJSON]
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := discover.Load(write(t, dir, "p.yml",
			[]byte("scrape_configs: [{job_name: j, file_sd_configs: [{files: ["+name+"]}]}]")), discover.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for _, x := range d.Refresh(t.Context()).Targets {
			u, err := url.Parse(x.Target.URL)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
				t.Errorf("%q: target %q, %v", text, x.Target.URL, err)
				continue
			}
			if h := u.Hostname(); h == "169.254.169.254" || h == "::ffff:169.254.169.254" {
				t.Errorf("%q: target %q", text, x.Target.URL)
			}
		}
	})
}
