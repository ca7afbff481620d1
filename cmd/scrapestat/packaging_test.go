package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestManPages: a page for each command, with its flags, the same bytes twice.
func TestManPages(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	runOK(t, "man", a)
	runOK(t, "man", b)
	for _, name := range []string{"scrapestat.1", "scrapestat-collect.1", "scrapestat-check.1", "scrapestat-requests-proxy.1"} {
		x, err := os.ReadFile(filepath.Join(a, name))
		if err != nil {
			t.Error(err)
			continue
		}
		y, err := os.ReadFile(filepath.Join(b, name))
		if err != nil || !bytes.Equal(x, y) {
			t.Errorf("%s differs from time to time (%v)", name, err)
		}
		if !bytes.Contains(x, []byte(".TH")) || name == "scrapestat-collect.1" && !bytes.Contains(x, []byte("warmup")) {
			t.Errorf("%s is no man page of its command", name)
		}
	}
}

// TestCompletions: every shell has one.
func TestCompletions(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out, talk bytes.Buffer
		if code := run(t.Context(), []string{"completion", shell}, stdio{nil, &out, &talk}); code != exitDone || !strings.Contains(out.String(), "scrapestat") {
			t.Errorf("completion %s: exit code %d, %.100q", shell, code, out.String())
		}
	}
}

// TestDeploy holds the Kubernetes examples against what they promise: commands
// that this program has, no right beyond reading pods, no root, nothing writable
// but the volume.
func TestDeploy(t *testing.T) {
	files, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	kinds := map[string]int{}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for d := yaml.NewDecoder(f); ; {
			var doc map[string]any
			err := d.Decode(&doc)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			kind, _ := doc["kind"].(string)
			kinds[kind]++
			switch kind {
			case "Role":
				for _, rule := range doc["rules"].([]any) {
					r := rule.(map[string]any)
					for _, verb := range r["verbs"].([]any) {
						if !slices.Contains([]any{"get", "list", "watch"}, verb) {
							t.Errorf("%s: the verb %v is more than reading", path, verb)
						}
					}
					if len(r["resources"].([]any)) != 1 || r["resources"].([]any)[0] != "pods" {
						t.Errorf("%s: resources %v, want pods alone", path, r["resources"])
					}
				}
			case "ClusterRole", "ClusterRoleBinding":
				t.Errorf("%s: %s reaches beyond the namespace", path, kind)
			case "Job", "Pod":
				checkPod(t, path, doc)
			}
		}
	}
	if kinds["Role"] != 1 || kinds["Job"] != 1 || kinds["Pod"] != 1 {
		t.Errorf("kinds %v", kinds)
	}
}

// checkPod looks at the container that runs this program.
func checkPod(t *testing.T, path string, doc map[string]any) {
	t.Helper()
	spec := doc["spec"].(map[string]any)
	if template, ok := spec["template"].(map[string]any); ok {
		spec = template["spec"].(map[string]any)
	}
	found := false
	for _, c := range spec["containers"].([]any) {
		c := c.(map[string]any)
		if c["image"] != "scrapestat:latest" {
			continue
		}
		found = true
		sc := c["securityContext"].(map[string]any)
		if sc["readOnlyRootFilesystem"] != true || sc["allowPrivilegeEscalation"] != false {
			t.Errorf("%s: securityContext %v", path, sc)
		}
		root := newRootCmd(discard())
		var args []string
		for _, a := range c["args"].([]any) {
			args = append(args, a.(string))
		}
		cmd, rest, err := root.Find(args)
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil || cmd.Name() != "collect" {
			t.Errorf("%s: %v is no command of this program: %v", path, args, err)
		}
	}
	if !found {
		t.Errorf("%s: no container runs scrapestat", path)
	}
}
