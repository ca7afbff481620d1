package discover_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/discover"
	"github.com/scrapestat/scrapestat/internal/fuzzbound"
	"github.com/scrapestat/scrapestat/metric"
)

// fakeAPI is an API server with lists of objects, served a page at a time.
type fakeAPI struct {
	mu    sync.Mutex
	token string
	lists map[string][]any // by kind
	asked []string
}

func (f *fakeAPI) set(kind string, objects ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists[kind] = objects
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.URL.String())
	if r.Header.Get("Authorization") != "Bearer "+f.token {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"kind":"Status","message":"forbidden for %s"}`, r.Header.Get("Authorization"))
		return
	}
	kind := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	page, all, next := []any{}, f.lists[kind], ""
	from := 0
	fmt.Sscan(r.URL.Query().Get("continue"), &from)
	if from < len(all) {
		page = all[from : from+1]
	}
	if from+1 < len(all) {
		next = fmt.Sprint(from + 1)
	}
	json.NewEncoder(w).Encode(map[string]any{"kind": "List", "apiVersion": "v1",
		"metadata": map[string]any{"resourceVersion": "1", "continue": next}, "items": page})
}

type m = map[string]any

func podObject(name, ip, image string, extra m) m {
	meta := m{"name": name, "namespace": "bench", "uid": "u-" + name, "labels": m{"app.kubernetes.io/name": "vllm"},
		"ownerReferences": []m{{"kind": "ReplicaSet", "name": "rs", "controller": true}}}
	for k, v := range extra {
		meta[k] = v
	}
	return m{"metadata": meta, "spec": m{"nodeName": "n1", "containers": []m{{"name": "main", "image": image,
		"ports": []m{{"name": "http", "containerPort": 8000, "protocol": "TCP"},
			{"name": "metrics", "containerPort": 9000}}}}},
		"status": m{"phase": "Running", "podIP": ip, "hostIP": "10.1.1.1",
			"conditions":        []m{{"type": "Ready", "status": "True"}},
			"containerStatuses": []m{{"name": "main", "containerID": "docker://1"}}}}
}

func startAPI(t *testing.T) (*fakeAPI, string) {
	t.Helper()
	f := &fakeAPI{token: "kube-secret-token", lists: map[string][]any{}}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	return f, srv.URL
}

func urls(r discover.Result) (out []string) {
	for _, f := range r.Targets {
		out = append(out, f.Target.URL)
	}
	slices.Sort(out)
	return out
}

func wantURLs(t *testing.T, r discover.Result, want ...string) {
	t.Helper()
	if got := urls(r); !slices.Equal(got, want) {
		t.Errorf("targets %q, want %q; warnings %v", got, want, r.Warnings)
	}
}

// TestKubernetes lets pods appear and vanish, with the labels that users relabel by.
func TestKubernetes(t *testing.T) {
	api, server := startAPI(t)
	api.set("pods", podObject("a", "10.0.0.1", "x", m{}), podObject("b", "fd00::2", "x", m{}),
		podObject("pending", "", "x", m{}))
	dir := t.TempDir()
	token := write(t, dir, "token", []byte(api.token))
	path := write(t, dir, "prometheus.yml", []byte(`
scrape_configs:
- job_name: pods
  kubernetes_sd_configs:
  - role: pod
    api_server: `+server+`
    authorization: {credentials_file: `+token+`}
    namespaces: {names: [bench]}
    selectors: [{role: pod, label: "app=vllm", field: "status.phase=Running"}]
  - role: node
    api_server: `+server+`
  relabel_configs:
  - {source_labels: [__meta_kubernetes_pod_container_port_name], regex: metrics, action: keep}
  - {regex: __meta_kubernetes_(.*), action: labelmap}
  - {source_labels: [__meta_kubernetes_pod_name], target_label: instance}
`))
	d, err := discover.Load(path, discover.Options{Refresh: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := d.Refresh(t.Context())
	wantURLs(t, r, "http://10.0.0.1:9000/metrics", "http://[fd00::2]:9000/metrics")
	if !strings.Contains(fmt.Sprint(r.Warnings), `role "node" is not supported`) {
		t.Errorf("warnings %v", r.Warnings)
	}
	if !strings.Contains(strings.Join(api.asked, " "),
		"/api/v1/namespaces/bench/pods?fieldSelector=status.phase%3DRunning&labelSelector=app%3Dvllm&limit=500") {
		t.Errorf("asked %q", api.asked)
	}
	want := map[string]string{"job": "pods", "instance": "a", "namespace": "bench", "pod_name": "a", "pod_uid": "u-a",
		"pod_ip":    "10.0.0.1",
		"pod_phase": "Running", "pod_ready": "true", "pod_node_name": "n1", "pod_host_ip": "10.1.1.1",
		"pod_controller_kind": "ReplicaSet",
		"pod_controller_name": "rs", "pod_label_app_kubernetes_io_name": "vllm",
		"pod_labelpresent_app_kubernetes_io_name": "true",
		"pod_container_name":                      "main", "pod_container_image": "x", "pod_container_id": "docker://1",
		"pod_container_init":      "false",
		"pod_container_port_name": "metrics", "pod_container_port_number": "9000", "pod_container_port_protocol": "TCP"}
	if got := r.Targets[0].Target.Labels; got != metric.LabelsFromMap(want) {
		t.Errorf("labels %s\nwant   %s", got, metric.LabelsFromMap(want))
	}
	first := r.Targets[0].ID
	api.set("pods")
	wantURLs(t, d.Refresh(t.Context()))
	api.set("pods", podObject("a", "10.0.0.1", "x", m{}))
	if r = d.Refresh(t.Context()); len(r.Targets) != 1 || r.Targets[0].ID != first {
		t.Errorf("the pod that came back is another one: %q, was %q", r.Targets, first)
	}
	api.mu.Lock()
	api.token = "rotated-token"
	api.mu.Unlock()
	r = d.Refresh(t.Context())
	wantURLs(t, r, "http://10.0.0.1:9000/metrics") // kept
	if s := fmt.Sprint(r.Warnings); !strings.Contains(s, "the right to list pods") ||
		strings.Contains(s, "kube-secret-token") {
		t.Errorf("warnings %s", s)
	}
	write(t, dir, "token", []byte("rotated-token"))
	if r = d.Refresh(t.Context()); len(r.Targets) != 1 || len(r.Warnings) != 0 {
		t.Errorf("after rotation: %v", r)
	}
}

// TestEndpoints joins endpoints with their services and pods.
func TestEndpoints(t *testing.T) {
	api, server := startAPI(t)
	api.set("pods", podObject("a", "10.0.0.1", "x", m{}))
	api.set("services", m{"metadata": m{"name": "svc", "namespace": "bench",
		"annotations": m{"prometheus.io/scrape": "true"}}})
	api.set("endpoints", m{"metadata": m{"name": "svc", "namespace": "bench"}, "subsets": []m{{
		"addresses":         []m{{"ip": "10.0.0.1", "targetRef": m{"kind": "Pod", "name": "a", "namespace": "bench"}}},
		"notReadyAddresses": []m{{"ip": "10.0.0.9"}}, "ports": []m{{"name": "http", "port": 8000, "protocol": "TCP"}}}}})
	path := write(t, t.TempDir(), "p.yml", []byte(`
scrape_configs:
- job_name: e
  kubernetes_sd_configs: [{role: endpoints, api_server: `+server+`, authorization: {credentials: kube-secret-token}}]
  relabel_configs: [{regex: __meta_kubernetes_(.*), action: labelmap}]
`))
	d, err := discover.Load(path, discover.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := d.Refresh(t.Context())
	wantURLs(t, r, "http://10.0.0.1:8000/metrics", "http://10.0.0.1:9000/metrics", "http://10.0.0.9:8000/metrics")
	for _, f := range r.Targets {
		if f.Target.URL != "http://10.0.0.1:8000/metrics" {
			continue
		}
		for n, v := range map[string]string{"endpoints_name": "svc", "service_name": "svc",
			"service_annotation_prometheus_io_scrape": "true",
			"endpoint_ready": "true", "endpoint_port_name": "http", "pod_name": "a", "pod_container_port_name": "http",
			"endpoint_address_target_kind": "Pod"} {
			if got, _ := f.Target.Labels.Get(n); got != v {
				t.Errorf("%s = %q, want %q", n, got, v)
			}
		}
	}
}

// TestInferencePods checks each of AIPerf's rules, through a kubeconfig.
func TestInferencePods(t *testing.T) {
	api, server := startAPI(t)
	note := func(k, v string) m { return m{"annotations": m{k: v}} }
	dead := podObject("dead", "10.0.0.7", "vllm/vllm-openai", m{})
	dead["status"].(m)["phase"] = "Failed"
	api.set("pods", podObject("image", "10.0.0.1", "docker.io/VLLM/vllm-openai:v1", m{}),
		podObject("other", "10.0.0.2", "nginx", note("prometheus.io/scrape", "true")),
		podObject("label", "10.0.0.3", "nginx",
			m{"labels": m{"nvidia.com/metrics-enabled": "TRUE"},
				"annotations": m{"prometheus.io/port": "7000", "prometheus.io/path": "stats"}}),
		podObject("paths", "10.0.0.4", "nginx", note("aiperf.nvidia.com/metrics-paths", " /a, ,b")), dead)
	dir := t.TempDir()
	config := write(t, dir, "config", []byte(`
current-context: c
contexts: [{name: c, context: {cluster: k, user: u, namespace: bench}}]
clusters: [{name: k, cluster: {server: `+server+`}}]
users: [{name: u, user: {token: kube-secret-token}}]
`))
	check := func(p discover.InferenceOptions, want ...string) {
		t.Helper()
		p.Kubeconfig = config
		d, err := discover.InferencePods(p, discover.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		wantURLs(t, d.Refresh(t.Context()), want...)
	}
	check(discover.InferenceOptions{}, "http://10.0.0.1:9000/metrics", "http://10.0.0.3:7000/stats",
		"http://10.0.0.4:9000/a", "http://10.0.0.4:9000/b")
	check(discover.InferenceOptions{Namespace: "*", Selector: "x=y"}, "http://10.0.0.1:9000/metrics",
		"http://10.0.0.2:9000/metrics",
		"http://10.0.0.3:7000/stats", "http://10.0.0.4:9000/a", "http://10.0.0.4:9000/b")
	if s := strings.Join(api.asked, " "); !strings.Contains(s, "/api/v1/namespaces/bench/pods") ||
		!strings.Contains(s, "/api/v1/pods?labelSelector=x%3Dy") {
		t.Errorf("asked %s", s)
	}
	for what, user := range map[string]string{"kubectl create token": "{exec: {command: aws}}",
		"not base64": "{client-certificate-data: '%'}"} {
		bad := write(t, dir, "bad", []byte("current-context: c\ncontexts: [{name: c, context: {cluster: k, user: "+
			"u}}]\nclusters: [{name: k, cluster: {server: "+server+"}}]\nusers: [{name: u, user: "+user+"}]\n"))
		if _, err := discover.InferencePods(discover.InferenceOptions{Kubeconfig: bad}, discover.Options{}); err == nil ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

type fakeDNS struct{ fail bool }

func (f fakeDNS) LookupIP(_ context.Context, network, _ string) ([]string, error) {
	if network == "ip6" {
		return []string{"fd00::1"}, nil
	}
	return []string{"10.0.0.1", "169.254.169.254"}, nil
}

func (f fakeDNS) LookupSRV(context.Context, string) ([]discover.Service, error) {
	if f.fail {
		return nil, errors.New("no such name")
	}
	return []discover.Service{{Host: "h.example.", Port: 81}}, nil
}

// TestConfig reads a configuration with everything in it and lists what is not
// understood, with its line.
func TestConfig(t *testing.T) {
	dir := t.TempDir()
	sd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `[{"targets":["10.9.9.9:1"],"labels":{"zone":"z"}}]`)
	}))
	defer sd.Close()
	write(t, dir, "t.yml", []byte("- targets: ['10.0.0.5:1', '169.254.169.254:80', 'bad/host']\n"))
	path := write(t, dir, "p.yml", []byte(`global:
  scrape_interval: 250ms
  external_labels: {a: b}
scrape_configs:
- job_name: s
  metrics_path: /m
  scheme: https
  params: {name: [a, b]}
  body_size_limit: 10MB
  sample_limit: 7
  bogus: 1
  tls_config: {insecure_skip_verify: true, nonsense: 1}
  static_configs: [{targets: ['h:1', 'unix:///run/x.sock'], labels: {__param_extra: e, tier: gold}}]
  consul_sd_configs: [{server: x}]
- job_name: f
  file_sd_configs: [{files: [t.yml, missing.json]}]
- job_name: h
  http_sd_configs: [{url: `+sd.URL+`}]
- job_name: d
  dns_sd_configs: [{names: [x], type: A, port: 9}, {names: [x], type: AAAA, port: 9}, {names: [y]}]
`))
	d, err := discover.Load(path, discover.Options{Resolver: fakeDNS{}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := d.Refresh(t.Context())
	wantURLs(t, r, "http://10.0.0.1:9/metrics", "http://10.0.0.5:1/metrics", "http://10.9.9.9:1/metrics",
		"http://[fd00::1]:9/metrics", "http://h.example:81/metrics",
		"https://h:1/m?extra=e&name=a&name=b", "unix:///run/x.sock")
	said := fmt.Sprint(r.Warnings)
	for _, want := range []string{"p.yml:3: external_labels", "p.yml:11: bogus", "p.yml:12: nonsense",
		"p.yml:14: consul_sd_configs is not supported", "missing.json: no such file",
		`"169.254.169.254:80": address 169.254.169.254 is link-local`, `"bad/host": the address is not host:port`,
		"were not verified"} {
		if !strings.Contains(said, want) {
			t.Errorf("no warning %q in %s", want, said)
		}
	}
	for _, f := range r.Targets {
		if strings.HasPrefix(f.Target.URL, "https://h") &&
			(f.Target.Interval != 250*time.Millisecond || f.Target.Limits.Body != 10<<20 || f.Target.Limits.Samples != 7) {
			t.Errorf("target %+v", f.Target)
		}
	}
	for text, want := range map[string]string{
		"scrape_configs: [{scheme: http}]":                                  "job_name is missing",
		"scrape_configs:\n- job_name: a\n- job_name: a":                     "p.yml:3",
		"scrape_configs:\n- job_name: a\n  scrape_interval: soon":           "p.yml:2",
		"scrape_configs:\n- job_name: a\n  relabel_configs: [{regex: '('}]": "p.yml:2",
		"scrape_configs:\n- job_name: a\n  bearer_token_file: /none/token":  "/none/token",
		"a: [":                "p.yml",
		"global: {}":          "no scrape_configs",
		"scrape_configs: [1]": "p.yml:1",
	} {
		write(t, dir, "p.yml", []byte(text))
		if _, err := discover.Load(path, discover.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestRelabel compares targets and series with what Prometheus' own functions
// make of the same rules.
func TestRelabel(t *testing.T) {
	rules := `
- {source_labels: [__address__], regex: '(.*):(\d+)', target_label: port, replacement: '$2'}
- {source_labels: [a, b], separator: '-', target_label: ab, action: replace}
- {source_labels: [a], modulus: 7, target_label: shard, action: hashmod}
- {source_labels: [a], target_label: up, action: uppercase}
- {regex: b, action: labeldrop}
- {source_labels: [a], regex: 'drop.*', action: drop}
- {regex: 'x_(.+)', replacement: 'y_$1', action: labelmap}
`
	var list []*relabel.Config
	if err := yaml.Unmarshal([]byte(rules), &list); err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if err := r.Validate(model.UTF8Validation); err != nil {
			t.Fatal(err)
		}
	}
	for i, own := range []map[string]string{{"a": "one", "b": "two"}, {"a": "dropped"}, {"x_q": "1", "b": ""}, {}} {
		text, _ := json.Marshal([]m{{"targets": []string{"h:80"}, "labels": own}})
		path := write(t, t.TempDir(), "p.yml", []byte("scrape_configs:\n- job_name: j\n  static_configs: "+string(text)+
			"\n  relabel_configs:"+strings.ReplaceAll(rules, "\n",
			"\n  ")+"\n  metric_relabel_configs:"+strings.ReplaceAll(rules, "\n", "\n  ")+"\n"))
		d, err := discover.Load(path, discover.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := d.Refresh(t.Context())
		b := labels.NewBuilder(labels.FromMap(own))
		b.Set("__address__", "h:80").Set("job", "j").Set("__scheme__", "http").Set("__metrics_path__", "/metrics")
		keep := relabel.ProcessBuilder(b, list...)
		if keep != (len(r.Targets) == 1) {
			t.Fatalf("case %d: kept %v, targets %v", i, keep, r.Targets)
		}
		if !keep {
			continue
		}
		b.Set("instance", "h:80").Del("__address__", "__scheme__", "__metrics_path__")
		if got, want := r.Targets[0].Target.Labels, metric.LabelsFromMap(b.Labels().Map()); got != want {
			t.Errorf("case %d: labels %s, want %s", i, got, want)
		}
		s := labels.NewBuilder(labels.FromMap(own)).Set("__name__", "n")
		relabel.ProcessBuilder(s, list...)
		name, got, ok := r.Targets[0].Target.Relabel("n", metric.LabelsFromMap(own))
		if want := metric.LabelsFromMap(s.Del("__name__").Labels().Map()); !ok || name != "n" || got != want {
			t.Errorf("case %d: series %s, want %s", i, got, want)
		}
	}
}

// FuzzLoad reads whatever a configuration may hold without a panic.
func FuzzLoad(f *testing.F) {
	f.Add("scrape_configs:\n- job_name: a\n  static_configs: [{targets: [h]}]\n  relabel_configs: [{action: drop, " +
		"regex: a}]\n")
	f.Add("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: b\n  file_sd_configs: [{files: ['*.json']}]\n  " +
		"tls_config: {ca: x}\n")
	f.Add("a: &a [x, x]\nb: &b [*a, *a]\nscrape_configs: [*b]\n")
	f.Add("scrape_configs: [{job_name: c, body_size_limit: 9EB, relabel_configs: [null]}]")
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzbound.Check(t)()
		if strings.Contains(text, "_sd_configs") || len(text) > 1<<16 {
			return // discovery would ask the network
		}
		d, err := discover.Load(write(t, t.TempDir(), "p.yml", []byte(text)), discover.Options{})
		if err != nil {
			return
		}
		defer d.Close()
		for _, target := range d.Refresh(t.Context()).Targets {
			if target.ID == "" || target.Target.URL == "" {
				t.Errorf("target %+v of %q", target, text)
			}
		}
	})
}
