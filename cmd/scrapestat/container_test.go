package main

import (
	"encoding/json"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// instruction is a line of Containerfile.
type instruction struct{ op, text string }

// stages reads Containerfile: the instructions of each FROM.
func stages(t *testing.T) (out [][]instruction) {
	t.Helper()
	text, err := os.ReadFile("../../Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		op, rest, ok := strings.Cut(line, " ")
		if !ok || strings.HasSuffix(line, "\\") ||
			!slices.Contains([]string{"FROM", "ARG", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"}, op) {
			t.Fatalf("Containerfile: the test does not know the line %q", line)
		}
		if op == "FROM" {
			out = append(out, nil)
		}
		if len(out) == 0 {
			t.Fatalf("Containerfile: %q stands before FROM", line)
		}
		out[len(out)-1] = append(out[len(out)-1], instruction{op, strings.TrimSpace(rest)})
	}
	return out
}

// TestContainerfile: the image holds a static binary, certificates and a folder for
// runs, has no shell and no root, and starts with a command that there is. That its
// RUN lines work, and that the binary needs nothing else, the step "release" of
// .ci/run shows.
func TestContainerfile(t *testing.T) {
	all := stages(t)
	if len(all) != 2 || !strings.HasSuffix(all[0][0].text, " AS build") || all[1][0].text != "scratch" {
		t.Fatalf("stages %v: want one that builds, and scratch", all)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	wants := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	if wants == nil || !strings.Contains(all[0][0].text, "golang:"+string(wants[1])+" ") {
		t.Errorf("Containerfile builds with %q, go.mod wants %q", all[0][0].text, wants)
	}
	runs := ""
	for _, in := range all[0] {
		if in.op == "RUN" {
			runs += in.text + "\n"
		}
	}
	for _, want := range []string{"CGO_ENABLED=0", "-trimpath", "-X main.version=$VERSION", "-o /out/scrapestat",
		"mkdir /out/runs"} {
		if !strings.Contains(runs, want) {
			t.Errorf("no %q in what the image runs to build: %s", want, runs)
		}
	}
	checkImage(t, all[1][1:])
}

func checkImage(t *testing.T, image []instruction) {
	t.Helper()
	last, holds := map[string]string{}, map[string]string{}
	for _, in := range image {
		last[in.op] = in.text
		if in.op == "COPY" {
			words := strings.Fields(in.text)
			from, to := words[len(words)-2], words[len(words)-1]
			if words[0] != "--from=build" {
				t.Errorf("COPY %s: from the build, not from the sources", in.text)
			}
			if strings.HasSuffix(to, "/") {
				to = path.Join(to, path.Base(from))
			}
			holds[to] = in.text
		} else if !slices.Contains([]string{"USER", "WORKDIR", "ENTRYPOINT", "CMD"}, in.op) {
			t.Errorf("%s %s: the image has no shell to do it", in.op, in.text)
		}
	}
	if len(holds) != 3 || holds["/etc/ssl/certs/ca-certificates.crt"] == "" ||
		!strings.Contains(holds["/runs"], "--chown="+last["USER"]+" ") {
		t.Errorf("the image holds %v; want the binary, certificates, and /runs of the user", holds)
	}
	if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(last["USER"]) {
		t.Errorf("USER %q: Kubernetes tells from numbers alone that it is not root", last["USER"])
	}
	if last["WORKDIR"] != "/runs" {
		t.Errorf("WORKDIR %q: a run without -o goes to a place that cannot be written", last["WORKDIR"])
	}
	var entry, args []string
	if err := json.Unmarshal([]byte(last["ENTRYPOINT"]), &entry); err != nil || len(entry) != 1 || holds[entry[0]] == "" {
		t.Errorf("ENTRYPOINT %s is no program of the image as a list: %v", last["ENTRYPOINT"], err)
	}
	if err := json.Unmarshal([]byte(last["CMD"]), &args); err != nil {
		t.Errorf("CMD %s is no list: %v", last["CMD"], err)
	}
	if code := run(t.Context(), args, discard()); code != exitDone {
		t.Errorf("CMD %v ends with %d", args, code)
	}
}
