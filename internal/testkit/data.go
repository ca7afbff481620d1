// Package testkit is what tests of several packages share.
package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// Data returns a file of testdata/ at the top of the repository:
//
//	body := testkit.Data(t, "bodies/vllm-0.32.0-after-run1.prom")
func Data(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Path returns where a file or folder of testdata/ lies. Tests run in the folder of
// their package, so it is looked for from there upwards.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		path := filepath.Join(dir, "testdata", filepath.FromSlash(name))
		if _, err := os.Stat(path); err == nil {
			return path
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatalf("no testdata/%s above the folder of the test", name)
		}
		dir = up
	}
}
