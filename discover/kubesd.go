package discover

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
)

// What of the objects of the API is needed.
type (
	objectMeta struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		UID         string            `json:"uid"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
		Owners      []struct {
			Kind       string `json:"kind"`
			Name       string `json:"name"`
			Controller bool   `json:"controller"`
		} `json:"ownerReferences"`
	}
	pod struct {
		Metadata objectMeta `json:"metadata"`
		Spec     struct {
			NodeName       string      `json:"nodeName"`
			Containers     []container `json:"containers"`
			InitContainers []container `json:"initContainers"`
		} `json:"spec"`
		Status struct {
			Phase      string `json:"phase"`
			PodIP      string `json:"podIP"`
			HostIP     string `json:"hostIP"`
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
			Containers     []containerStatus `json:"containerStatuses"`
			InitContainers []containerStatus `json:"initContainerStatuses"`
		} `json:"status"`
	}
	container struct {
		Name  string          `json:"name"`
		Image string          `json:"image"`
		Ports []containerPort `json:"ports"`
	}
	containerPort struct {
		Name     string `json:"name"`
		Port     int    `json:"containerPort"`
		Protocol string `json:"protocol"`
	}
	containerStatus struct {
		Name string `json:"name"`
		ID   string `json:"containerID"`
	}
	service struct {
		Metadata objectMeta `json:"metadata"`
	}
	endpoints struct {
		Metadata objectMeta `json:"metadata"`
		Subsets  []struct {
			Addresses []endpointAddress `json:"addresses"`
			NotReady  []endpointAddress `json:"notReadyAddresses"`
			Ports     []struct {
				Name     string `json:"name"`
				Port     int    `json:"port"`
				Protocol string `json:"protocol"`
			} `json:"ports"`
		} `json:"subsets"`
	}
	endpointAddress struct {
		IP        string `json:"ip"`
		Hostname  string `json:"hostname"`
		NodeName  string `json:"nodeName"`
		TargetRef *struct {
			Kind      string `json:"kind"`
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"targetRef"`
	}
)

const kubePrefix = "__meta_kubernetes_"

// newKubernetesSource makes a source of a role; nil for one that is not built.
func (d *Discoverer) newKubernetesSource(j *job, c *kubernetesSD) (*source, error) {
	role := c.Role
	if role != "pod" && role != "endpoints" {
		d.warnf("config_not_understood", "%s: kubernetes_sd_configs role %q is not supported, only pod and endpoints: its targets are not polled", j.c.where(), role)
		return nil, nil
	}
	k, err := d.newKube(c.APIServer, config.JoinDir(j.dir(), c.KubeconfigFile), c.Client)
	if err != nil {
		return nil, err
	}
	namespaces := c.Namespaces.Names
	if c.Namespaces.OwnNamespace {
		if k.namespace == "" {
			return nil, errors.New("own_namespace: the own namespace is not known outside a pod; give names")
		}
		namespaces = append(namespaces[:len(namespaces):len(namespaces)], k.namespace)
	}
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	selector := func(role string) kubeSelector {
		for _, s := range c.Selectors {
			if s.Role == role {
				return s
			}
		}
		return kubeSelector{}
	}
	return &source{kind: "kubernetes_sd", guarded: true, every: defaultRefresh, client: k.client, poll: func(ctx context.Context) ([]group, error) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		var out []group
		for _, ns := range namespaces {
			pods, err := list[pod](ctx, k, "pods", ns, selector("pod"))
			if err != nil {
				return nil, err
			}
			if role == "pod" {
				out = append(out, podGroups(pods)...)
				continue
			}
			ends, err := list[endpoints](ctx, k, "endpoints", ns, selector("endpoints"))
			if err != nil {
				return nil, err
			}
			services, err := list[service](ctx, k, "services", ns, selector("service"))
			if err != nil {
				return nil, err
			}
			out = append(out, endpointGroups(ends, services, pods)...)
		}
		return out, nil
	}}, nil
}

// sanitize makes a label name of a key: what is no letter, digit or underscore
// becomes an underscore.
func sanitize(key string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, key)
}

// addMeta adds the labels of an object: its name, labels and annotations.
func addMeta(to map[string]string, kind string, m *objectMeta) {
	prefix := kubePrefix + kind + "_"
	to[prefix+"name"] = m.Name
	for k, v := range m.Labels {
		to[prefix+"label_"+sanitize(k)], to[prefix+"labelpresent_"+sanitize(k)] = v, "true"
	}
	for k, v := range m.Annotations {
		to[prefix+"annotation_"+sanitize(k)], to[prefix+"annotationpresent_"+sanitize(k)] = v, "true"
	}
}

// podLabels are those that all targets of a pod have.
func podLabels(p *pod) map[string]string {
	l := map[string]string{}
	addMeta(l, "pod", &p.Metadata)
	ready := "unknown"
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			ready = strings.ToLower(c.Status)
		}
	}
	const pod = kubePrefix + "pod_"
	l[pod+"ip"], l[pod+"ready"], l[pod+"phase"] = p.Status.PodIP, ready, p.Status.Phase
	l[pod+"node_name"], l[pod+"host_ip"], l[pod+"uid"] = p.Spec.NodeName, p.Status.HostIP, p.Metadata.UID
	for _, o := range p.Metadata.Owners {
		if o.Controller {
			l[pod+"controller_kind"], l[pod+"controller_name"] = o.Kind, o.Name
		}
	}
	return l
}

// eachPort calls f for each port of each container, and once for a container
// without one.
func (p *pod) eachPort(f func(port containerPort, labels map[string]string)) {
	const prefix = kubePrefix + "pod_container_"
	all := append(p.Spec.Containers[:len(p.Spec.Containers):len(p.Spec.Containers)], p.Spec.InitContainers...)
	for i, c := range all {
		isInit := i >= len(p.Spec.Containers)
		base := map[string]string{prefix + "name": c.Name, prefix + "image": c.Image, prefix + "init": strconv.FormatBool(isInit)}
		for _, s := range append(p.Status.Containers[:len(p.Status.Containers):len(p.Status.Containers)], p.Status.InitContainers...) {
			if s.Name == c.Name {
				base[prefix+"id"] = s.ID
			}
		}
		if len(c.Ports) == 0 {
			f(containerPort{}, base)
		}
		for _, port := range c.Ports {
			l := map[string]string{prefix + "port_name": port.Name, prefix + "port_number": strconv.Itoa(port.Port),
				prefix + "port_protocol": cmp.Or(port.Protocol, "TCP")}
			for k, v := range base {
				l[k] = v
			}
			f(port, l)
		}
	}
}

// podGroups makes the targets of the role pod. A pod that has no address yet has
// none.
func podGroups(pods []pod) []group {
	var out []group
	for i := range pods {
		p := &pods[i]
		if p.Status.PodIP == "" {
			continue
		}
		g := group{labels: podLabels(p)}
		g.labels[kubePrefix+"namespace"] = p.Metadata.Namespace
		p.eachPort(func(port containerPort, l map[string]string) {
			l[model.AddressLabel] = hostPort(p.Status.PodIP, port.Port)
			g.targets = append(g.targets, l)
		})
		out = append(out, g)
	}
	return out
}

// hostPort is an address; port 0 is none.
func hostPort(ip string, port int) string {
	switch {
	case port != 0:
		return net.JoinHostPort(ip, strconv.Itoa(port))
	case strings.Contains(ip, ":"):
		return "[" + ip + "]"
	}
	return ip
}

// endpointGroups makes the targets of the role endpoints: a target for each
// address and port, with the labels of its service and pod, and one for each
// other port of these pods.
func endpointGroups(ends []endpoints, services []service, pods []pod) []group {
	key := func(m *objectMeta) string { return m.Namespace + "/" + m.Name }
	podOf, serviceOf := map[string]*pod{}, map[string]*service{}
	for i := range pods {
		podOf[key(&pods[i].Metadata)] = &pods[i]
	}
	for i := range services {
		serviceOf[key(&services[i].Metadata)] = &services[i]
	}
	var out []group
	for i := range ends {
		e := &ends[i]
		g := group{labels: map[string]string{kubePrefix + "namespace": e.Metadata.Namespace}}
		addMeta(g.labels, "endpoints", &e.Metadata)
		if s := serviceOf[key(&e.Metadata)]; s != nil {
			addMeta(g.labels, "service", &s.Metadata)
		}
		bound := map[*pod]map[int]bool{}
		for _, sub := range e.Subsets {
			for _, port := range sub.Ports {
				add := func(a *endpointAddress, ready bool) {
					l := endpointLabels(a, ready)
					l[model.AddressLabel] = hostPort(a.IP, port.Port)
					const prefix = kubePrefix + "endpoint_port_"
					l[prefix+"name"], l[prefix+"protocol"] = port.Name, cmp.Or(port.Protocol, "TCP")
					if r := a.TargetRef; r != nil && r.Kind == "Pod" {
						if p := podOf[cmp.Or(r.Namespace, e.Metadata.Namespace)+"/"+r.Name]; p != nil {
							addPod(l, p, port.Port)
							if bound[p] == nil {
								bound[p] = map[int]bool{}
							}
							bound[p][port.Port] = true
						}
					}
					g.targets = append(g.targets, l)
				}
				for n := range sub.Addresses {
					add(&sub.Addresses[n], true)
				}
				for n := range sub.NotReady {
					add(&sub.NotReady[n], false)
				}
			}
		}
		g.targets = append(g.targets, otherPorts(pods, bound)...)
		out = append(out, g)
	}
	return out
}

func endpointLabels(a *endpointAddress, ready bool) map[string]string {
	const prefix = kubePrefix + "endpoint_"
	l := map[string]string{prefix + "ready": strconv.FormatBool(ready)}
	if a.NodeName != "" {
		l[prefix+"node_name"] = a.NodeName
	}
	if a.Hostname != "" {
		l[prefix+"hostname"] = a.Hostname
	}
	if a.TargetRef != nil {
		l[prefix+"address_target_kind"], l[prefix+"address_target_name"] = a.TargetRef.Kind, a.TargetRef.Name
	}
	return l
}

// addPod adds the labels of a pod and of the container that has the port.
func addPod(l map[string]string, p *pod, number int) {
	for k, v := range podLabels(p) {
		l[k] = v
	}
	p.eachPort(func(port containerPort, labels map[string]string) {
		if port.Port == number {
			for k, v := range labels {
				l[k] = v
			}
		}
	})
}

// otherPorts makes targets of the ports of pods that no endpoint has.
func otherPorts(pods []pod, bound map[*pod]map[int]bool) []map[string]string {
	var out []map[string]string
	for i := range pods {
		p := &pods[i]
		if bound[p] == nil || p.Status.PodIP == "" {
			continue
		}
		p.eachPort(func(port containerPort, l map[string]string) {
			if port.Port == 0 || bound[p][port.Port] {
				return
			}
			for k, v := range podLabels(p) {
				l[k] = v
			}
			l[model.AddressLabel] = hostPort(p.Status.PodIP, port.Port)
			out = append(out, l)
		})
	}
	return out
}
