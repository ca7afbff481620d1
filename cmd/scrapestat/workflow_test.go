package main

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/internal/simulate"
)

// workflow is what the tests read of a workflow of GitHub.
type workflow struct {
	On struct {
		Call struct {
			Inputs map[string]struct {
				Type, Description string
				Required          bool
				Default           any
			}
		} `yaml:"workflow_call"`
	}
	Permissions map[string]string
	Jobs        map[string]struct {
		Defaults struct{ Run struct{ Shell string } }
		Uses     string
		With     map[string]any
		Steps    []workflowStep
	}
}

type workflowStep struct {
	ID, Name, If, Run, Uses string
	With                    map[string]any
	Env                     map[string]string
}

const workflowPath = "../../deploy/github/benchmark.yml"

func readWorkflow(t *testing.T) workflow {
	t.Helper()
	text, err := os.ReadFile(workflowPath)
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

var workflowExpression = regexp.MustCompile(`\$\{\{ *(.*?) *\}\}`)

// TestWorkflowIsSafe: inputs reach scripts through the environment only, and what is
// used of others has a version; it writes nothing to the repository.
func TestWorkflowIsSafe(t *testing.T) {
	w := readWorkflow(t)
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		t.Errorf("permissions %v", w.Permissions)
	}
	for _, s := range w.Jobs["benchmark"].Steps {
		if strings.Contains(s.Run, "${{") {
			t.Errorf("step %s: an expression inside a script can be any command", s.Name)
		}
		if s.Uses != "" && !regexp.MustCompile(`^actions/[a-z/-]+@v\d+$`).MatchString(s.Uses) {
			t.Errorf("step %s uses %s", s.Name, s.Uses)
		}
		for _, text := range append([]string{s.If}, slices.Collect(maps.Values(s.Env))...) {
			for _, m := range workflowExpression.FindAllStringSubmatch(text, -1) {
				for _, input := range regexp.MustCompile(`inputs\.([a-z-]+)`).FindAllStringSubmatch(m[1], -1) {
					if _, ok := w.On.Call.Inputs[input[1]]; !ok {
						t.Errorf("step %s: there is no input %s", s.Name, input[1])
					}
				}
			}
		}
	}
	for name, in := range w.On.Call.Inputs {
		if in.Description == "" || in.Required == (in.Default != nil) {
			t.Errorf("input %s: description %q, required %v, default %v", name, in.Description, in.Required, in.Default)
		}
	}
}

// TestWorkflowIsCalled: docs/check.md calls it with inputs that it has.
func TestWorkflowIsCalled(t *testing.T) {
	page, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	called := 0
	for _, m := range regexp.MustCompile("(?s)```yaml\n(jobs:.*?)```").FindAllStringSubmatch(string(page), -1) {
		var w workflow
		if err := yaml.Unmarshal([]byte(m[1]), &w); err != nil {
			t.Fatal(err)
		}
		for _, job := range w.Jobs {
			if !strings.HasSuffix(job.Uses, "/benchmark.yml") {
				continue
			}
			called++
			for name, in := range readWorkflow(t).On.Call.Inputs {
				if _, given := job.With[name]; in.Required && !given {
					t.Errorf("docs/check.md does not give the input %s", name)
				}
				delete(job.With, name)
			}
			for name := range job.With {
				t.Errorf("docs/check.md gives the input %s, which there is not", name)
			}
		}
	}
	if called == 0 {
		t.Error("docs/check.md does not call the workflow")
	}
}

// runner executes the scripts of the workflow as GitHub's runner does, in one folder.
type runner struct {
	t       *testing.T
	dir     string
	inputs  map[string]string
	branch  string
	outcome map[string]string // of steps, by id
	outputs map[string]string // of steps, by id.name
	summary string
	failed  int // exit code of the first step that failed
	cached  []string
}

// term is the value of a name, or of a text in quotes.
func (r *runner) term(name string) string {
	switch {
	case name == "!cancelled()":
		return "true"
	case strings.HasPrefix(name, "'"):
		return strings.Trim(name, "'")
	case name == "github.ref_name":
		return r.branch
	case name == "github.event.repository.default_branch":
		return "main"
	}
	if input, ok := strings.CutPrefix(name, "inputs."); ok {
		return r.inputs[input]
	}
	if step, ok := strings.CutPrefix(name, "steps."); ok {
		id, rest, _ := strings.Cut(step, ".")
		if rest == "outcome" {
			return r.outcome[id]
		}
		return r.outputs[id+"."+strings.TrimPrefix(rest, "outputs.")]
	}
	r.t.Fatalf("the test does not know the expression %q", name)
	return ""
}

// holds evaluates a condition: comparisons and names with && between.
func (r *runner) holds(condition string) bool {
	for part := range strings.SplitSeq(condition, " && ") {
		held := false
		if a, b, ok := strings.Cut(part, " == "); ok {
			held = r.term(a) == r.term(b)
		} else if a, b, ok := strings.Cut(part, " != "); ok {
			held = r.term(a) != r.term(b)
		} else {
			held = r.term(part) == "true"
		}
		if !held {
			return false
		}
	}
	return true
}

func (r *runner) steps(w workflow) {
	r.t.Helper()
	job := w.Jobs["benchmark"]
	if job.Defaults.Run.Shell != "bash" {
		r.t.Fatalf("shell %q, want bash", job.Defaults.Run.Shell)
	}
	for _, s := range job.Steps {
		condition := r.failed == 0
		if s.If != "" {
			condition = r.holds(workflowExpression.FindStringSubmatch(s.If)[1]) &&
				(condition || strings.Contains(s.If, "!cancelled()"))
		}
		switch {
		case !condition:
		case s.Uses == "actions/cache/save@v4":
			r.cached = append(r.cached, s.With["path"].(string))
		case s.Run != "":
			r.script(s)
		}
	}
}

// script runs one with GitHub's bash.
func (r *runner) script(s workflowStep) {
	r.t.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
	cmd.Dir = r.dir
	state := r.t.TempDir()
	cmd.Env = append(os.Environ(), "GITHUB_OUTPUT="+filepath.Join(state, "output"),
		"GITHUB_STEP_SUMMARY="+filepath.Join(state, "summary"),
		"GITHUB_PATH="+filepath.Join(state, "path"), "GITHUB_SHA=0123abc", "GITHUB_REF_NAME="+r.branch)
	for name, text := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+workflowExpression.ReplaceAllStringFunc(text, func(e string) string {
			return r.term(workflowExpression.FindStringSubmatch(e)[1])
		}))
	}
	said, err := cmd.CombinedOutput()
	r.outcome[s.ID] = "success"
	if err != nil {
		r.outcome[s.ID] = "failure"
		r.t.Logf("step %s: %v: %s", s.Name, err, said)
		if r.failed == 0 {
			r.failed = cmd.ProcessState.ExitCode()
		}
	}
	out, _ := os.ReadFile(filepath.Join(state, "output")) // a step need not write any
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		r.outputs[s.ID+"."+name] = value
	}
	text, _ := os.ReadFile(filepath.Join(state, "summary"))
	r.summary += string(text)
}

// TestWorkflow executes the scripts of the workflow against a simulated server: a run
// that keeps its limits, one that does not, one without a baseline and the next one,
// and a load generator that fails.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	w := readWorkflow(t)
	server := httptest.NewServer(simulated(t, "vllm", simulate.Options{Rate: 40, Seed: 3}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	job := func(branch string, inputs map[string]string) *runner {
		t.Helper()
		all := map[string]string{"targets": "vllm=" + strings.TrimPrefix(server.URL, "http://"), "command": "sleep 0.3",
			"warmup": "0s",
			// complete is for a machine that has time
			"collect-flags": "--settle 0s --interval 100ms --scrape-budget 0", "slo": "slo.yaml", "ready": "resets"}
		for name, in := range w.On.Call.Inputs {
			if _, given := all[name]; !given && in.Default != nil {
				all[name] = fmt.Sprint(in.Default)
			}
		}
		for name, value := range inputs {
			all[name] = value
		}
		r := &runner{t: t, dir: dir, inputs: all, branch: branch, outcome: map[string]string{}, outputs: map[string]string{}}
		r.steps(w)
		return r
	}
	writeText(t, filepath.Join(dir, "slo.yaml"), "checks:\n  - vllm:num_preemptions samples >= 2\n")
	writeText(t, filepath.Join(dir, "strict.yaml"), "checks:\n  - vllm:num_preemptions samples >= 200000\n")
	writeText(t, filepath.Join(dir, "relative.yaml"), "checks:\n  - vllm:num_preemptions samples >= baseline - 99%\n")
	expect := func(r *runner, code int, verdict, summary string, files ...string) {
		t.Helper()
		if r.failed != code || r.outputs["gate.verdict"] != verdict || !strings.Contains(r.summary, summary) {
			t.Errorf("exit code %d, verdict %q, summary %q; want %d, %q, %q", r.failed, r.outputs["gate.verdict"], r.summary,
				code, verdict, summary)
		}
		for _, name := range files {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
				t.Errorf("no %s: %v", name, err)
			}
		}
	}
	expect(job("feature", nil), 0, "pass", "**PASS: 2 passed", "junit.xml", "run/report.html", "run/run.db")
	expect(job("feature", map[string]string{"slo": "strict.yaml"}), exitBad, "fail", "**FAIL: 1 passed, 1 failed",
		"junit.xml", "run/report.html")
	expect(job("feature", map[string]string{"command": "exit 7"}), 7, "", "")
	expect(job("feature", map[string]string{"slo": "none.yaml"}), exitUsage, "broken", "")

	relative := map[string]string{"slo": "relative.yaml", "baseline": "true"}
	first := job("main", relative)
	expect(first, exitIncomplete, "no-data", "No run to compare with yet", "baseline/run.db")
	if len(first.cached) != 1 {
		t.Errorf("the first run of main is kept %d times, want once", len(first.cached))
	}
	second := job("feature", relative)
	expect(second, 0, "pass", "before (1 run) against after (1 run)")
	if len(second.cached) != 0 {
		t.Error("a run of a branch became the baseline")
	}
	if third := job("main", map[string]string{"slo": "strict.yaml", "baseline": "true"}); third.failed != exitBad ||
		len(third.cached) != 0 {
		t.Errorf("a run of main that failed with %d was kept %d times", third.failed, len(third.cached))
	}
}
