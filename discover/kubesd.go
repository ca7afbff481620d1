package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
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
			Ports     []endpointPort    `json:"ports"`
		} `json:"subsets"`
	}
	endpointPort struct {
		Name     string `json:"name"`
		Port     int    `json:"port"`
		Protocol string `json:"protocol"`
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
		d.warnf("config_not_understood", "%s: kubernetes_sd_configs role %q is not supported, only pod and endpoints: its "+
			"targets are not polled", j.c.where(), role)
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
		namespaces = append(slices.Clone(namespaces), k.namespace)
	}
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	selector := func(role string) (found kubeSelector) {
		if i := slices.IndexFunc(c.Selectors, func(s kubeSelector) bool { return s.Role == role }); i >= 0 {
			found = c.Selectors[i]
		}
		return found
	}
	return &source{kind: "kubernetes_sd", guarded: true, every: defaultRefresh, client: k.client,
		poll: func(ctx context.Context) ([]group, error) {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			var out []group
			for _, ns := range namespaces {
				groups, err := k.groups(ctx, role, ns, selector)
				if err != nil {
					return nil, err
				}
				out = append(out, groups...)
			}
			return out, nil
		}}, nil
}

// groups lists what a role needs of a namespace and makes its targets.
func (k *kube) groups(ctx context.Context, role, ns string, selector func(role string) kubeSelector) ([]group, error) {
	pods, err := list[pod](ctx, k, "pods", ns, selector("pod"))
	if err != nil {
		return nil, err
	}
	if role == "pod" {
		return podGroups(pods)
	}
	ends, err := list[endpoints](ctx, k, "endpoints", ns, selector("endpoints"))
	if err != nil {
		return nil, err
	}
	services, err := list[service](ctx, k, "services", ns, selector("service"))
	if err != nil {
		return nil, err
	}
	return endpointGroups(ends, services, pods)
}

// sanitize makes a label name of a key: what is no letter, digit or underscore becomes an underscore.
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

// eachPort calls f for each port of each container, and once for a container without one.
func (p *pod) eachPort(f func(port containerPort, labels map[string]string)) {
	const prefix = kubePrefix + "pod_container_"
	all := slices.Concat(p.Spec.Containers, p.Spec.InitContainers)
	for i, c := range all {
		isInit := i >= len(p.Spec.Containers)
		base := map[string]string{prefix + "name": c.Name, prefix + "image": c.Image,
			prefix + "init": strconv.FormatBool(isInit)}
		for _, s := range slices.Concat(p.Status.Containers, p.Status.InitContainers) {
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
			maps.Copy(l, base)
			f(port, l)
		}
	}
}

// maxMeta bounds the labels of all targets that a list makes. Who may make a pod can give it tens of thousands of ports
// and annotations, and every port is a target with all of them.
const maxMeta = 2_000_000

// budget counts labels before they are made.
type budget int

// take reports whether there is room for a target with n labels.
func (b *budget) take(n int) bool {
	*b += budget(n + 10) // its own, of port and address
	return *b <= maxMeta
}

// size is how many labels addMeta makes.
func (m *objectMeta) size() int { return 2 * (len(m.Labels) + len(m.Annotations)) }

func (b *budget) check() error {
	if *b <= maxMeta {
		return nil
	}
	return fmt.Errorf("the targets have more than %d labels in all; give namespaces or selectors", maxMeta)
}

// podGroups makes the targets of the role pod. A pod that has no address yet has none.
func podGroups(pods []pod) ([]group, error) {
	var out []group
	var b budget
	for i := range pods {
		p := &pods[i]
		if p.Status.PodIP == "" {
			continue
		}
		g := group{labels: podLabels(p)}
		g.labels[kubePrefix+"namespace"] = p.Metadata.Namespace
		p.eachPort(func(port containerPort, l map[string]string) {
			if b.take(len(g.labels)) {
				l[model.AddressLabel] = hostPort(p.Status.PodIP, port.Port)
				g.targets = append(g.targets, l)
			}
		})
		out = append(out, g)
	}
	return out, b.check()
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

// endpointGroups makes the targets of the role endpoints: a target for each address and port, with the labels of its
// service and pod, and one for each other port of these pods.
func endpointGroups(ends []endpoints, services []service, pods []pod) ([]group, error) {
	key := func(m *objectMeta) string { return m.Namespace + "/" + m.Name }
	podOf, serviceOf := map[string]*pod{}, map[string]*service{}
	for i := range pods {
		podOf[key(&pods[i].Metadata)] = &pods[i]
	}
	for i := range services {
		serviceOf[key(&services[i].Metadata)] = &services[i]
	}
	var out []group
	var room budget
	for i := range ends {
		e := &ends[i]
		m := endpointGroup{namespace: e.Metadata.Namespace, podOf: podOf, bound: map[*pod]map[int]bool{}, room: &room}
		m.labels = map[string]string{kubePrefix + "namespace": e.Metadata.Namespace}
		addMeta(m.labels, "endpoints", &e.Metadata)
		if s := serviceOf[key(&e.Metadata)]; s != nil {
			addMeta(m.labels, "service", &s.Metadata)
		}
		for _, sub := range e.Subsets {
			for _, port := range sub.Ports {
				for n := range sub.Addresses {
					m.add(&sub.Addresses[n], port, true)
				}
				for n := range sub.NotReady {
					m.add(&sub.NotReady[n], port, false)
				}
				if err := room.check(); err != nil {
					return nil, err // before the next port has all these addresses again
				}
			}
		}
		m.otherPorts()
		out = append(out, m.group)
	}
	return out, room.check()
}

// endpointGroup is the group of one endpoints object in the making.
type endpointGroup struct {
	group
	namespace string
	podOf     map[string]*pod
	pods      []*pod // those behind its addresses, in order
	bound     map[*pod]map[int]bool
	room      *budget
}

// add makes the target of an address and a port.
func (m *endpointGroup) add(a *endpointAddress, port endpointPort, ready bool) {
	var p *pod
	if r := a.TargetRef; r != nil && r.Kind == "Pod" {
		p = m.podOf[cmp.Or(r.Namespace, m.namespace)+"/"+r.Name]
	}
	if !m.room.take(len(m.labels) + p.size() + p.ports()) {
		return
	}
	l := endpointLabels(a, ready)
	l[model.AddressLabel] = hostPort(a.IP, port.Port)
	const prefix = kubePrefix + "endpoint_port_"
	l[prefix+"name"], l[prefix+"protocol"] = port.Name, cmp.Or(port.Protocol, "TCP")
	if p != nil {
		addPod(l, p, port.Port)
		if m.bound[p] == nil {
			m.bound[p] = map[int]bool{}
			m.pods = append(m.pods, p)
		}
		m.bound[p][port.Port] = true
	}
	m.targets = append(m.targets, l)
}

// otherPorts makes targets of the ports of its pods that no endpoint has.
func (m *endpointGroup) otherPorts() {
	for _, p := range m.pods {
		if p.Status.PodIP == "" {
			continue
		}
		p.eachPort(func(port containerPort, l map[string]string) {
			if port.Port == 0 || m.bound[p][port.Port] || !m.room.take(len(m.labels)+p.size()) {
				return
			}
			maps.Copy(l, podLabels(p))
			l[model.AddressLabel] = hostPort(p.Status.PodIP, port.Port)
			m.targets = append(m.targets, l)
		})
	}
}

// ports is how many ports are looked at to find one; nil has none.
func (p *pod) ports() (n int) {
	if p == nil {
		return 0
	}
	for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
		n += len(c.Ports)
	}
	return n
}

// size is how many labels a pod makes; nil makes none.
func (p *pod) size() int {
	if p == nil {
		return 0
	}
	return p.Metadata.size()
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
	maps.Copy(l, podLabels(p))
	p.eachPort(func(port containerPort, labels map[string]string) {
		if port.Port == number {
			maps.Copy(l, labels)
		}
	})
}
