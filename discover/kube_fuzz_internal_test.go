package discover

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/config"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
)

// apiServer answers lists of Kubernetes by the kind at the end of the path.
type apiServer map[string]string

func (a apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(a[path.Base(r.URL.Path)]))}, nil
}

// FuzzKubernetes reads lists as an API server, or who may make objects in it, can
// write them: those targets that come of it can be asked, and none is a metadata
// service.
func FuzzKubernetes(f *testing.F) {
	const pods = `{"metadata":{"continue":""},"items":[{"metadata":{"name":"p","namespace":"n","uid":"u",` +
		`"labels":{"a/b":"c"},"annotations":{"prometheus.io/port":"1","aiperf.nvidia.com/metrics-paths":"/a,b"},
"ownerReferences":[{"kind":"ReplicaSet","name":"r","controller":true}]},"spec":{"nodeName":"k",` +
		`"containers":[{"name":"c","image":"vllm","ports":[{"name":"metrics","containerPort":8000}]}],` +
		`"initContainers":[{"name":"i"}]},
"status":{"phase":"Running","podIP":"10.0.0.1","conditions":[{"type":"Ready","status":"True"}],` +
		`"containerStatuses":[{"name":"c","containerID":"x"}]}}]}`
	const ends = `{"items":[{"metadata":{"name":"s","namespace":"n"},"subsets":[{"addresses":[{"ip":"10.0.0.1",` +
		`"targetRef":{"kind":"Pod","name":"p"}}],"notReadyAddresses":[{"ip":"fd00::1"}],"ports":[{"name":"m",` +
		`"port":8000}]}]}]}`
	f.Add(pods, ends, `{"items":[{"metadata":{"name":"s","namespace":"n","labels":{"":"\u0000"}}}]}`)
	f.Add(strings.ReplaceAll(pods, "10.0.0.1", "169.254.169.254"), strings.ReplaceAll(ends, "10.0.0.1", "a b/@[::1]?#"),
		`null`)
	f.Add(strings.ReplaceAll(pods, "8000", "-1"), strings.ReplaceAll(ends, "8000", "99999999"), `{"items":null}`)
	f.Add(`{"items":[{},null]}`, `{"items":[{"subsets":[null,{"ports":[{}],"addresses":[{}]}]}]}`, `[]`)
	f.Add(`{"metadata":{"continue":"for ever"}}`, "\xff", `{"items":{}}`)
	j := &job{name: "j", c: &parsedJob{}, clients: map[reach]*Client{}}
	j.c.MetricsPath, j.c.Scheme, j.c.Client = "/metrics", "http", config.DefaultHTTPClientConfig
	f.Fuzz(func(t *testing.T, podList, endList, serviceList string) {
		defer fuzzbound.Check(t)()
		d := &Discoverer{said: map[string]bool{}}
		k := &kube{server: "http://k", ask: asker{&http.Client{Transport: apiServer{"pods": podList, "endpoints": endList,
			"services": serviceList}}}}
		list1, err1 := list[pod](t.Context(), k, "pods", "n", kubeSelector{})
		list2, err2 := list[endpoints](t.Context(), k, "endpoints", "", kubeSelector{})
		list3, err3 := list[service](t.Context(), k, "services", "", kubeSelector{})
		if err1 != nil && err2 != nil && err3 != nil {
			return
		}
		groups, _ := podGroups(list1) // an error is an answer too
		more, _ := endpointGroups(list2, list3, list1)
		groups = append(groups, more...)
		for i := range list1 {
			if g, ok := inferenceGroup(&list1[i], i%2 == 0); ok {
				groups = append(groups, g)
			}
		}
		for i := range groups {
			for _, x := range j.targets(d, &source{kind: "kubernetes_sd", guarded: true}, &groups[i]) {
				u, err := url.Parse(x.Target.URL)
				if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
					t.Errorf("target %q, %v, of %q %q", x.Target.URL, err, podList, endList)
				}
				// A host that is a name, as an address with a letter behind it is, is
				// guarded when it has been looked up.
				if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.Unmap().IsLinkLocalUnicast() {
					t.Errorf("target %q of %q %q", x.Target.URL, podList, endList)
				}
			}
		}
	})
}

// FuzzKubeconfig reads a kubeconfig of anybody.
func FuzzKubeconfig(f *testing.F) {
	f.Add("current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]\nclusters: [{name: " +
		"k, cluster: {server: 'https://h', certificate-authority-data: aGk=}}]\nusers: [{name: u, user: {token: t}}]\n")
	f.Add("current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: " +
		"{proxy-url: ':'}}]\nusers: [{name: u, user: {exec: {command: sh}}}]\n")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzbound.Check(t)()
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := config.DefaultHTTPClientConfig
		if err := new(kube).fromFile(path, &c); err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("%q: the error %q does not name the file", text, err)
		}
	})
}

// TestKubernetesBudget has objects that a tenant of a cluster may make: one pod,
// and one list of endpoints, with as many annotations and ports as fit. They are
// refused before they are multiplied.
func TestKubernetesBudget(t *testing.T) {
	var p pod
	p.Metadata.Name, p.Status.PodIP, p.Metadata.Annotations = "p", "10.0.0.1", map[string]string{}
	for i := range 2000 {
		p.Metadata.Annotations[fmt.Sprint("a", i)] = ""
	}
	var e endpoints
	e.Subsets = append(e.Subsets, struct {
		Addresses []endpointAddress `json:"addresses"`
		NotReady  []endpointAddress `json:"notReadyAddresses"`
		Ports     []endpointPort    `json:"ports"`
	}{})
	sub := &e.Subsets[0]
	c := container{Name: "c"}
	for i := range 5000 {
		c.Ports = append(c.Ports, containerPort{Port: i})
		sub.Ports = append(sub.Ports, endpointPort{Port: i})
		sub.Addresses = append(sub.Addresses, endpointAddress{IP: "10.0.0.1"})
	}
	p.Spec.Containers = []container{c}
	check := func(name string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "selectors") {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	_, err := podGroups([]pod{p})
	check("pods", err)
	_, err = endpointGroups([]endpoints{e}, nil, nil)
	check("endpoints", err)
	sub.Addresses = sub.Addresses[:1]
	sub.Addresses[0].TargetRef = &struct {
		Kind      string `json:"kind"`
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	}{"Pod", "p", ""}
	sub.Ports = sub.Ports[:1]
	_, err = endpointGroups([]endpoints{e}, nil, []pod{p})
	check("other ports", err)
}
