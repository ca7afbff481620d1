package metric

import (
	"net/url"
	"strconv"
)

// NameLabel is the label under which Prometheus has the name of a series.
const NameLabel = "__name__"

// ServerName is what the server calls a family, or the values of one that has lost a suffix.
func (f *Family) ServerName() string {
	if f.Suffix == SuffixUnknown {
		return f.Name
	}
	return f.Name + f.Suffix
}

// PromLabels are the labels that every series of a target has in Prometheus: job, instance and its name, in place of
// which more counts. used holds the instances of the targets before, and gets that of this one.
func (t *Target) PromLabels(more map[string]string, used map[string]bool) []Label {
	own := map[string]string{"job": "scrapestat", "instance": instanceOf(t.URL, used)}
	if t.Name != "" {
		own["target"] = t.Name
	}
	for name, value := range more {
		own[name] = value
	}
	var labels []Label
	for name, value := range LabelsFromMap(own).All() {
		labels = append(labels, Label{Name: name, Value: value})
	}
	return labels
}

// instanceOf is host and port of an address, and all of it where another target has the same.
func instanceOf(address string, used map[string]bool) string {
	instance := address
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		instance = u.Host
	}
	if used[instance] {
		instance = address
	}
	used[instance] = true
	return instance
}

// PromSeries is the name and the labels under which Prometheus has a slot of a series with these labels of its own,
// those of its target among them: a label of the series that one of the target hides becomes exported_x. Labels without
// a value are left out.
func (s *SampleID) PromSeries(f *Family, own Labels, target []Label) Labels {
	name, cut, sum, count := f.Name, "", "_sum", "_count"
	if f.Type == GaugeHistogram {
		sum, count = "_gsum", "_gcount"
	}
	switch s.Role {
	case RoleValue:
		name = f.ServerName()
	case RoleBucket:
		name, cut = name+"_bucket", "le"
	case RoleQuantile:
		cut = "quantile"
	case RoleSum:
		name += sum
	case RoleCount:
		name += count
	}
	labels := make([]Label, 0, 8+len(target))
	add := func(name, value string) {
		if value != "" {
			labels = append(labels, Label{name, value})
		}
	}
	for n, v := range own.All() {
		for hides(target, n) {
			n = "exported_" + n // as Prometheus does it
		}
		add(n, v)
	}
	for _, l := range target {
		add(l.Name, l.Value)
	}
	add(NameLabel, name)
	if cut != "" {
		add(cut, s.BoundText())
	}
	return NewLabels(labels...)
}

func hides(target []Label, name string) bool {
	for _, l := range target {
		if l.Name == name {
			return true
		}
	}
	return false
}

// BoundText is the bound as the server wrote it, or else its shortest spelling.
func (s *SampleID) BoundText() string {
	if s.Text != "" {
		return s.Text
	}
	return strconv.FormatFloat(s.Bound, 'g', -1, 64)
}
