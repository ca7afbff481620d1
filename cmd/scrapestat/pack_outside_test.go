package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPackFromOutside gives the pack of LMDeploy to a build that has none: the screen is that of the embedded pack.
func TestPackFromOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := t.TempDir()
	pack, err := filepath.Abs("../../catalog/packs/lmdeploy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {pack: ""}})
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
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
	whole, without := filepath.Join(dir, "whole"), filepath.Join(dir, "without")
	run("go", "build", "-o", whole, ".")
	run("go", "build", "-overlay", file("overlay.json", string(overlay)), "-o", without, ".")
	recorded := filepath.Join(dir, "run")
	run(whole, "import", "openmetrics", file("dump.om", body), "-o", recorded)
	want := run(whole, "show", recorded)
	if got := run(without, "show", recorded); got == want {
		t.Fatal("the build without the pack knows LMDeploy")
	}
	if got := run(without, "show", recorded, "--catalog", pack); got != want {
		t.Errorf("with --catalog:\n%s\nwith the embedded pack:\n%s", got, want)
	}
}
