package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPackFromOutside gives the pack of LMDeploy, under a name that this build does not know, with --catalog: the
// screen is that of the embedded pack but for the name.
func TestPackFromOutside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rename := strings.NewReplacer("lmdeploy", "acmeserv", "LMDeploy", "AcmeServ").Replace
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	embedded, err := os.ReadFile("../../catalog/packs/lmdeploy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const body = `# TYPE lmdeploy:request_success counter
lmdeploy:request_success_total{model_name="m",finished_reason="ResponseType.FINISH"} 0 1700000000
lmdeploy:request_success_total{model_name="m",finished_reason="ResponseType.FINISH"} 20 1700000010
# TYPE lmdeploy:generation_tokens counter
lmdeploy:generation_tokens_total{model_name="m"} 0 1700000000
lmdeploy:generation_tokens_total{model_name="m"} 1000 1700000010
# TYPE lmdeploy:num_requests_running gauge
lmdeploy:num_requests_running{model_name="m"} 3 1700000000
lmdeploy:num_requests_running{model_name="m"} 3 1700000010
# EOF
`
	show := func(args ...string) string {
		t.Helper()
		out := try(t, exitDone, "", append([]string{"show"}, args...)...)
		return regexp.MustCompile(`(?m)^id .*`).ReplaceAllString(out, "id") // of one recording each
	}
	known, unknown := filepath.Join(dir, "lmdeploy"), filepath.Join(dir, "acmeserv")
	try(t, exitDone, "", "import", "openmetrics", file("lmdeploy.om", body), "-o", known)
	try(t, exitDone, "", "import", "openmetrics", file("acmeserv.om", rename(body)), "-o", unknown)
	want := rename(show(known))
	if got := show(unknown); got == want {
		t.Fatal("the build knows AcmeServ")
	}
	if got := show(unknown, "--catalog", file("acmeserv.yaml", rename(string(embedded)))); got != want {
		t.Errorf("with --catalog:\n%s\nwith the embedded pack:\n%s", got, want)
	}
}
