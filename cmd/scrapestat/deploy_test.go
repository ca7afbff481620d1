package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/rundb"
)

// kubernetes is a document of deploy/kubernetes.
type kubernetes struct {
	path, kind string
	doc        map[string]any
}

// examples reads them all.
func examples(t *testing.T) (out []kubernetes) {
	t.Helper()
	files, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("examples: %v, %v", files, err)
	}
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
			out = append(out, kubernetes{filepath.Base(path), kind, doc})
		}
	}
	return out
}

// at goes down a document: names of maps, and numbers of lists.
func at(doc any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := doc.(map[string]any)
			doc = m[p]
		case int:
			list, _ := doc.([]any)
			if p >= len(list) {
				return nil
			}
			doc = list[p]
		}
	}
	return doc
}

// kubernetesKeys are the keys that the examples may have, with their types: the API
// server ignores a misspelt one, and a security context is then none. PodSpec stands
// for spec of a Pod and spec.template.spec of a Job.
const kubernetesKeys = `apiVersion string, kind string, metadata.name string, data.pods.yml string, ` +
	`automountServiceAccountToken bool,
rules.apiGroups.* string, rules.resources.* string, rules.verbs.* string, subjects.kind string, subjects.name string,
roleRef.apiGroup string, roleRef.kind string, roleRef.name string, spec.accessModes.* string, ` +
	`spec.resources.requests.storage string,
spec.backoffLimit int, spec.activeDeadlineSeconds int, spec.completions int, spec.parallelism int, ` +
	`spec.completionMode string,
 PodSpec.restartPolicy string, PodSpec.serviceAccountName string,
PodSpec.automountServiceAccountToken bool, PodSpec.securityContext.runAsNonRoot bool, ` +
	`PodSpec.securityContext.runAsUser int,
PodSpec.securityContext.runAsGroup int, PodSpec.securityContext.fsGroup int, ` +
	`PodSpec.securityContext.seccompProfile.type string,
PodSpec.containers.name string, PodSpec.containers.image string, PodSpec.containers.args.* string, ` +
	`PodSpec.containers.ports.containerPort int,
PodSpec.containers.ports.name string, PodSpec.containers.env.name string, PodSpec.containers.env.value string, ` +
	`PodSpec.containers.env.valueFrom.fieldRef.fieldPath string,
PodSpec.containers.securityContext.runAsNonRoot bool, PodSpec.containers.securityContext.runAsUser int,
PodSpec.containers.securityContext.runAsGroup int, PodSpec.containers.securityContext.allowPrivilegeEscalation bool,
PodSpec.containers.securityContext.readOnlyRootFilesystem bool, ` +
	`PodSpec.containers.securityContext.capabilities.drop.* string,
PodSpec.containers.resources.requests.cpu string, PodSpec.containers.resources.requests.memory string,
PodSpec.containers.resources.limits.memory string, PodSpec.containers.volumeMounts.name string,
PodSpec.containers.volumeMounts.mountPath string, PodSpec.containers.volumeMounts.readOnly bool, ` +
	`PodSpec.volumes.name string,
PodSpec.volumes.persistentVolumeClaim.claimName string, PodSpec.volumes.configMap.name string, ` +
	`PodSpec.volumes.emptyDir.sizeLimit string`

// leaves calls visit with the path and the value of everything below doc.
func leaves(path string, doc any, visit func(path string, v any)) {
	switch v := doc.(type) {
	case map[string]any:
		for k, sub := range v {
			leaves(strings.TrimPrefix(path+"."+k, "."), sub, visit)
		}
	case []any:
		for _, sub := range v {
			if _, ok := sub.(map[string]any); ok {
				leaves(path, sub, visit)
			} else {
				leaves(path+".*", sub, visit)
			}
		}
	default:
		visit(path, v)
	}
}

// TestDeploySlurm checks that the example is a script, and its command one of ours.
func TestDeploySlurm(t *testing.T) {
	const script = "../../deploy/slurm/array.sh"
	if out, err := exec.Command("sh", "-n", script).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(strings.ReplaceAll(string(text), "\\\n", ""), "exec scrapestat ")
	cmd, rest, err := newRootCmd(discard()).Find(strings.Fields(line))
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err != nil || cmd.Name() != "collect" {
		t.Errorf("%q is no command of this program: %v", line, err)
	}
}

// TestDeploy holds the Kubernetes examples against what they promise: keys that
// Kubernetes has, commands that this program has, no root, nothing writable but the
// volume, nothing of the host, no secret.
func TestDeploy(t *testing.T) {
	allowed := map[string]string{}
	for entry := range strings.SplitSeq(strings.ReplaceAll(kubernetesKeys, "\n", " "), ", ") {
		path, kind, _ := strings.Cut(strings.TrimSpace(entry), " ")
		allowed[path] = kind
	}
	kinds := map[string]int{}
	for _, e := range examples(t) {
		kinds[e.kind]++
		leaves("", e.doc, func(path string, v any) {
			path = strings.Replace(path, "spec.template.spec.", "PodSpec.", 1)
			if e.kind == "Pod" {
				path = strings.Replace(path, "spec.", "PodSpec.", 1)
			}
			if want := allowed[path]; want != fmt.Sprintf("%T", v) {
				t.Errorf("%s: %s %s is a %T, want %q", e.path, e.kind, path, v, want)
			}
		})
		switch e.kind {
		case "Job":
			checkPod(t, e, at(e.doc, "spec", "template", "spec"))
		case "Pod":
			checkPod(t, e, at(e.doc, "spec"))
			if at(e.doc, "spec", "automountServiceAccountToken") != false {
				t.Errorf("%s: the sidecar has a token of the cluster", e.path)
			}
		}
	}
	for kind, want := range map[string]int{"ServiceAccount": 1, "Role": 1, "RoleBinding": 1, "ConfigMap": 1,
		"PersistentVolumeClaim": 2, "Job": 2, "Pod": 1} {
		if kinds[kind] != want {
			t.Errorf("%d of kind %s, want %d", kinds[kind], kind, want)
		}
		delete(kinds, kind)
	}
	if len(kinds) > 0 {
		t.Errorf("kinds that no example needs: %v", kinds)
	}
}

// checkPod looks at a pod and its container that runs this program.
func checkPod(t *testing.T, e kubernetes, spec any) {
	t.Helper()
	found := false
	for i := range at(spec, "containers").([]any) {
		c := at(spec, "containers", i)
		if image, _ := at(c, "image").(string); strings.HasSuffix(image, ":latest") || !strings.Contains(image, ":") {
			t.Errorf("%s: image %q has no version", e.path, image)
		}
		if image, _ := at(c, "image").(string); !strings.HasPrefix(image, "registry.example.com/scrapestat:") {
			continue
		}
		found = true
		own := func(key string) any { // of the container, else of the pod
			if v := at(c, "securityContext", key); v != nil {
				return v
			}
			return at(spec, "securityContext", key)
		}
		for key, want := range map[string]any{"runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true} {
			if own(key) != want {
				t.Errorf("%s: %s is %v, want %v", e.path, key, own(key), want)
			}
		}
		if at(own("seccompProfile"), "type") != "RuntimeDefault" || fmt.Sprint(at(own("capabilities"), "drop")) != "[ALL]" {
			t.Errorf("%s: seccompProfile %v, capabilities %v", e.path, own("seccompProfile"), own("capabilities"))
		}
		if at(c, "resources", "limits", "memory") == nil || at(c, "resources", "requests", "cpu") == nil {
			t.Errorf("%s: resources %v", e.path, at(c, "resources"))
		}
		root := newRootCmd(discard())
		cmd, rest, err := root.Find(arguments(c))
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil || cmd.Name() != "collect" {
			t.Errorf("%s: %v is no command of this program: %v", e.path, arguments(c), err)
		}
	}
	if !found {
		t.Errorf("%s: no container runs scrapestat", e.path)
	}
}

func arguments(container any) (args []string) {
	for _, a := range at(container, "args").([]any) {
		args = append(args, a.(string))
	}
	return args
}

// fakeCluster is an API server that grants what a Role says, and nothing else.
type fakeCluster struct {
	mu     sync.Mutex
	role   any
	pods   string          // the list it answers
	used   map[string]bool // verb and resource of the requests
	denied []string
	labels []string // selectors of the requests
}

func (f *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	resource, inNamespace := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/bench/")
	verb := "list"
	switch {
	case r.Method != http.MethodGet:
		verb = strings.ToLower(r.Method)
	case r.URL.Query().Has("watch"):
		verb = "watch"
	case strings.Contains(resource, "/"):
		verb = "get"
	}
	if !inNamespace || !f.grants(verb, resource) {
		f.denied = append(f.denied, verb+" "+r.URL.Path)
		http.Error(w, `{"kind":"Status","status":"Failure"}`, http.StatusForbidden)
		return
	}
	f.used[verb+" "+resource] = true
	f.labels = append(f.labels, r.URL.Query().Get("labelSelector"))
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, f.pods)
}

func (f *fakeCluster) grants(verb, resource string) bool {
	for i := range at(f.role, "rules").([]any) {
		rule := at(f.role, "rules", i)
		if slices.Contains(at(rule, "verbs").([]any), any(verb)) &&
			slices.Contains(at(rule, "resources").([]any), any(resource)) {
			return true
		}
	}
	return false
}

// TestDeployNeedsItsRights runs the Job's command line against a cluster that grants
// what the Role does: that is enough, and each right is used.
func TestDeployNeedsItsRights(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, "# TYPE a counter\na 1\n")
	}))
	t.Cleanup(server.Close)
	host, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	pod := func(name, phase string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"bench","labels":{"llm-d.ai/role":"decode"}},"spec":{`+
			`"containers":[{"name":"c","image":"vllm","ports":[{"name":"http","containerPort":%s}]}]},"status":{"phase":%q,`+
			`"podIP":%q}}`,
			name, port, phase, host)
	}
	cluster := &fakeCluster{used: map[string]bool{}, pods: `{"metadata":{},"items":[` + pod("running", "Running") + "," +
		pod("over", "Succeeded") + `]}`}
	var args []string
	dir := t.TempDir()
	for _, e := range examples(t) {
		switch e.kind {
		case "Role":
			cluster.role = e.doc
		case "ConfigMap":
			writeText(t, filepath.Join(dir, "pods.yml"), at(e.doc, "data", "pods.yml").(string))
		case "Job":
			if e.path == "job.yaml" {
				args = arguments(at(e.doc, "spec", "template", "spec", "containers", 0))
			}
		}
	}
	api := httptest.NewServer(cluster)
	t.Cleanup(api.Close)
	writeText(t, filepath.Join(dir, "kubeconfig"),
		"current-context: c\nclusters: [{name: k, cluster: {server: '"+api.URL+"'}}]\ncontexts: [{name: c, context: "+
			"{cluster: k, user: u, namespace: bench}}]\nusers: [{name: u, user: {token: t}}]\n")
	t.Setenv("KUBECONFIG", filepath.Join(dir, "kubeconfig"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	out := filepath.Join(dir, "run")
	for i, a := range args {
		args[i] = strings.NewReplacer("/etc/scrapestat/pods.yml", filepath.Join(dir, "pods.yml"), "/runs/$(POD)",
			out).Replace(a)
	}
	// The same, in less time; the last of two flags counts.
	runOK(t, append(args, "--interval", "20ms", "--warmup", "0s", "--duration", "200ms", "--settle", "0s",
		"--discovery-interval", "50ms")...)
	m, err := rundb.ReadManifest(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Targets) != 1 || m.Targets[0].Labels["role"] != "decode" || m.Tags["job"] != "scrapestat" {
		t.Errorf("targets %+v, tags %v; want the pod that runs", m.Targets, m.Tags)
	}
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	if len(cluster.denied) > 0 {
		t.Errorf("asked for more than the Role grants: %v", cluster.denied)
	}
	for i := range at(cluster.role, "rules").([]any) {
		rule := at(cluster.role, "rules", i)
		for _, verb := range at(rule, "verbs").([]any) {
			for _, resource := range at(rule, "resources").([]any) {
				if !cluster.used[fmt.Sprint(verb, " ", resource)] {
					t.Errorf("the Role grants %v %v, which nothing used", verb, resource)
				}
			}
		}
	}
	if len(cluster.labels) == 0 || cluster.labels[0] != "llm-d.ai/inferenceServing=true" {
		t.Errorf("selectors of the requests: %q", cluster.labels)
	}
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
