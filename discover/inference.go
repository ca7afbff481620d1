package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
)

// InferenceOptions says where inference pods are looked for.
type InferenceOptions struct {
	Namespace  string // "" is the own one, "*" all of them
	Selector   string // of labels; all pods it selects count as inference pods
	Kubeconfig string // file; "" is the cluster this runs in, KUBECONFIG, ~/.kube/config
}

// InferencePods finds the inference pods of a Kubernetes cluster by the rules of AIPerf: running pods that are labelled
// or annotated for it, or whose image is that of a known engine. See docs/targets.md.
func InferencePods(p InferenceOptions, o Options) (*Discoverer, error) {
	d := &Discoverer{o: o, said: map[string]bool{}}
	j := &job{name: "inference-pods", c: &parsedJob{}, clients: map[reach]*Client{}}
	j.c.Client = config.DefaultHTTPClientConfig
	k, err := d.newKube("", p.Kubeconfig, config.DefaultHTTPClientConfig)
	if err != nil {
		return nil, fmt.Errorf("find inference pods: %w", err)
	}
	namespace := p.Namespace
	switch {
	case namespace == "*":
		namespace = ""
	case namespace == "" && k.namespace == "":
		d.Close()
		return nil, errors.New("find inference pods: the own namespace is not known; give one, or * for all")
	case namespace == "":
		namespace = k.namespace
	}
	s := &source{kind: "kubernetes_sd", guarded: true, every: defaultRefresh, client: k.client}
	s.poll = func(ctx context.Context) ([]group, error) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		pods, err := list[pod](ctx, k, "pods", namespace, kubeSelector{Label: p.Selector})
		if err != nil {
			return nil, err
		}
		var out []group
		for i := range pods {
			if g, ok := inferenceGroup(&pods[i], p.Selector != ""); ok {
				out = append(out, g)
			}
		}
		return out, nil
	}
	j.sources = []*source{s}
	d.jobs = []*job{j}
	return d, nil
}

// The marks of an inference pod (aiperf, Kubernetes discovery).
const (
	metricsLabel     = "nvidia.com/metrics-enabled"
	pathsAnnotation  = "aiperf.nvidia.com/metrics-paths"
	portAnnotation   = "prometheus.io/port"
	schemeAnnotation = "prometheus.io/scheme"
	pathAnnotation   = "prometheus.io/path"
)

// engineImages returns what the image of an inference engine contains.
func engineImages() []string {
	return []string{"vllm", "sglang", "tritonserver", "triton-server", "triton-inference-server", "tensorrt-llm",
		"tensorrtllm", "trt-llm", "trtllm", "dynamo"}
}

// eligible reports whether a pod is an inference pod. prometheus.io/scrape alone makes
// none: most pods that have it are something else.
func eligible(p *pod) bool {
	if strings.EqualFold(p.Metadata.Labels[metricsLabel], "true") {
		return true
	}
	if _, ok := p.Metadata.Annotations[pathsAnnotation]; ok {
		return true
	}
	for _, c := range p.Spec.Containers {
		for _, part := range engineImages() {
			if strings.Contains(strings.ToLower(c.Image), part) {
				return true
			}
		}
	}
	return false
}

// inferenceGroup makes the targets of a pod: one for each of its paths.
func inferenceGroup(p *pod, selected bool) (group, bool) {
	if p.Status.Phase != "Running" || p.Status.PodIP == "" || !selected && !eligible(p) {
		return group{}, false
	}
	port := metricsPort(p)
	if port == 0 {
		return group{}, false
	}
	a := p.Metadata.Annotations
	var g group
	for _, path := range metricsPaths(a) {
		g.targets = append(g.targets, map[string]string{
			model.AddressLabel:     hostPort(p.Status.PodIP, port),
			model.SchemeLabel:      strings.ToLower(cmp.Or(a[schemeAnnotation], "http")),
			model.MetricsPathLabel: path,
			model.InstanceLabel:    p.Metadata.Name,
			"namespace":            p.Metadata.Namespace,
			"pod":                  p.Metadata.Name,
			"node":                 p.Spec.NodeName,
		})
	}
	return g, true
}

// metricsPort is the annotated port, else the one called metrics, else the first one, else 0.
func metricsPort(p *pod) int {
	if n, err := strconv.Atoi(strings.TrimSpace(p.Metadata.Annotations[portAnnotation])); err == nil && n > 0 &&
		n < 65536 {
		return n
	}
	first := 0
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == "metrics" {
				return port.Port
			}
			first = cmp.Or(first, port.Port)
		}
	}
	return first
}

// metricsPaths are those of the annotation, as they are.
func metricsPaths(a map[string]string) []string {
	var out []string
	for _, path := range strings.Split(a[pathsAnnotation], ",") {
		if path = strings.TrimSpace(path); path != "" {
			out = append(out, "/"+strings.TrimPrefix(path, "/"))
		}
	}
	if len(out) == 0 {
		out = append(out, "/"+strings.TrimPrefix(cmp.Or(a[pathAnnotation], "/metrics"), "/"))
	}
	return out
}
