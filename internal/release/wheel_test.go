package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// holdWheel checks a wheel of the version 1.2.3: its order, times and modes, that nothing stands behind data, and that
// RECORD has the hash of every file.
func holdWheel(t *testing.T, name string, data []byte) {
	t.Helper()
	if !strings.HasPrefix(name, "scrapestat-1.2.3-py3-none-") {
		t.Errorf("wheel %s", name)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	files := map[string]string{}
	for _, f := range z.File {
		names = append(names, f.Name)
		mode := uint32(0o100644)
		if strings.Contains(f.Name, ".data/scripts/") {
			mode = 0o100755
		}
		if f.Flags != 0 || f.ModifiedDate != 1<<5|1 || f.ModifiedTime != 0 || f.ExternalAttrs != mode<<16 ||
			len(f.Extra) > 0 {
			t.Errorf("%s: flags %d, date %d, attributes %o, extra %d", f.Name, f.Flags, f.ModifiedDate, f.ExternalAttrs,
				len(f.Extra))
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
	}
	last := len(names) - 1
	if names[last] != "scrapestat-1.2.3.dist-info/RECORD" || !slices.IsSorted(names[:last]) {
		t.Errorf("order %v", names)
	}
	var record strings.Builder
	for _, n := range names[:last] {
		sum := sha256.Sum256([]byte(files[n]))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", n, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[n]))
	}
	if got := files[names[last]]; got != record.String()+names[last]+",,\n" {
		t.Errorf("RECORD:\n%s", got)
	}
	tag := strings.TrimSuffix(strings.TrimPrefix(name, "scrapestat-1.2.3-py3-none-"), ".whl")
	for file, want := range map[string]string{"scrapestat/_version.py": "__version__ = \"1.2.3\"\n",
		"scrapestat-1.2.3.dist-info/METADATA": "\nVersion: 1.2.3\n", "scrapestat-1.2.3.dist-info/licenses/LICENSE": "terms",
		"scrapestat-1.2.3.dist-info/WHEEL":                         "\nTag: py3-none-" + strings.Split(tag, ".")[0] + "\n",
		"scrapestat-1.2.3.dist-info/licenses/THIRD_PARTY_LICENSES": "==== Go 1."} {
		if !strings.Contains(files[file], want) {
			t.Errorf("%s has no %q: %q", file, want, files[file])
		}
	}
	if _, ok := files["scrapestat/notes.txt"]; ok {
		t.Error("a file that is no module is in the wheel")
	}
}

// TestWheelTags: every platform that is published has a wheel.
func TestWheelTags(t *testing.T) {
	for _, p := range published {
		if wheelTags[p] == "" {
			t.Errorf("%s has no tag", p)
		}
	}
}

func TestPEP440(t *testing.T) {
	for version, want := range map[string]string{"0.1.0": "0.1.0", "0.2.0-rc.1": "0.2.0rc1", "1.0.0-beta.2": "1.0.0b2",
		"1.0.0-alpha3": "1.0.0a3", "1.0.0-ci": "", "1.0": "", "1.0.0-rc": ""} {
		got, err := pep440(version)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s is %q, %v, want %q", version, got, err, want)
		}
	}
}
