package pack

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/metric"
)

// Recognise is how a server is known by its body.
type Recognise struct {
	Families []string `yaml:"families"` // any of them; a trailing * stands for any ending
	Unless   string   `yaml:"unless"`   // another pack, whose families these are where it is there
	Help     string   `yaml:"help"`     // or what begins a HELP text
	// Label is a label, and Bare the family without prefix that has it, by which older servers are known.
	Label string `yaml:"label"`
	Bare  string `yaml:"bare"`
	Order int    `yaml:"order"` // among the servers of a body, the more specific first; 0 is the rank of the pack
	// Name is what the program is called where the title of the pack names what it measures.
	Name string `yaml:"name"`
	Host bool   `yaml:"host"` // it describes a machine or a wrapper around an engine rather than an engine
	// Version is a label that has the version, beside those of families that inform of the build.
	Version string `yaml:"version"`
	// Asks are what the server answers beside metrics, Paths where it has metrics other than /metrics, and Where is at
	// which port it has them, for people.
	Asks  []Ask    `yaml:"asks"`
	Paths []string `yaml:"paths"`
	Where string   `yaml:"where"`
	// Every is how often the server renews the body, or the part of it that Of names; 0 means at each event.
	Every time.Duration `yaml:"every"`
	Of    string        `yaml:"of"`
	If    []string      `yaml:"if"` // families one of which is there where Of is; none is always
}

// Ask is a request by which a server is known that shows no metrics, and its version where those do not tell it.
type Ask struct {
	Get     string `yaml:"get"`     // a path that costs the server nothing
	JSON    string `yaml:"json"`    // a key of the object that it answers with; "" tells nothing of who it is
	Version string `yaml:"version"` // the key of its version; "" is not to be asked for that
	List    bool   `yaml:"list"`    // its metrics must have been a JSON list
	// Status and Says are of the refusal of metrics itself, in place of a path.
	Status int    `yaml:"status"`
	Says   string `yaml:"says"`
}

// Clients is how requests of clients are found in a server.
type Clients struct {
	Rank    int               `yaml:"rank"`    // among servers, the one in front first; 0 is no such server
	Count   string            `yaml:"count"`   // the family that counts what counters of time sum up
	Without []string          `yaml:"without"` // canonical ids that are part of another one
	Also    map[string]string `yaml:"also"`    // canonical ids of families that have none
}

// What hints are of, beside bodies: an endpoint of a run that names families of the server and has numbers of none, and
// one that is polled more often than the server renews what the text names; a known server that shows no metrics, one
// of any kind that answers with a status, with an empty body, or with a JSON list.
const (
	Silent   = "silent"
	Fast     = "fast"
	Hidden   = "hidden"
	Failing  = "failing"
	Empty    = "empty"
	JSONList = "json_list"
)

func hintKinds() []string { return []string{Silent, Fast, Hidden, Failing, Empty, JSONList} }

// Hint is what to tell of a body. All of its conditions must hold; names that end in * stand for families with that
// beginning.
type Hint struct {
	Code   string   `yaml:"code"` // a stable word
	Level  string   `yaml:"level"`
	Run    string   `yaml:"run"`    // "": it is of bodies
	Of     []string `yaml:"of"`     // servers: a silent one has numbers of none of them, a fast one of any
	If     []string `yaml:"if"`     // any of these families is there
	Unless []string `yaml:"unless"` // none of these is
	Label  string   `yaml:"label"`  // a label that has several values
	Bytes  int      `yaml:"bytes"`  // the body is larger
	Status int      `yaml:"status"` // of a failing server
	// Zero is a family that adds up to 0 while Moving does not.
	Zero   string `yaml:"zero"`
	Moving string `yaml:"moving"`
	Text   string `yaml:"text"`
	Fix    string `yaml:"fix"`
}

// Need is what gives a server some families.
type Need struct {
	Families string `yaml:"families"` // a trailing * stands for any ending
	Text     string `yaml:"text"`
}

// Note is why a quantity is not what the same quantity of another server is.
type Note struct {
	Letter string   `yaml:"letter"`
	Name   string   `yaml:"name"` // by which packs know it; "" is the letter
	Of     []string `yaml:"of"`   // canonical ids
	Text   string   `yaml:"text"`
	Alone  bool     `yaml:"alone"` // told without another server beside it too
	// Forbids is set where the quantities mean something else, so that neither is better or worse.
	Forbids bool `yaml:"forbids"`
	// IDs are words of canonical ids that mean different things themselves.
	IDs map[string]string `yaml:"ids"`
}

// Labels are names of labels that mean the same everywhere.
type Labels struct {
	Replica  []string `yaml:"replica"`  // tell replicas apart, and are aggregated over unless somebody asks for them
	Kept     []string `yaml:"kept"`     // are not aggregated over
	Volatile []string `yaml:"volatile"` // differ between two runs of the same
	// Whole has the value that stands for all of a label: ranks that each tell the whole, a total beside its parts.
	Whole  map[string]string `yaml:"whole"`
	Apart  []Apart           `yaml:"apart"`
	Wholes []metric.Label    `yaml:"-"` // Whole of several packs, sorted within each
}

// Apart is a label over which some families are never added up.
type Apart struct {
	Families []string `yaml:"families"`
	Label    string   `yaml:"label"`
}

// Server is what is known of a server beside families and quantities.
type Server struct {
	Recognise Recognise
	Clients   Clients
	Needs     []Need
	Hints     []Hint
	// Says are the words of the server for notes, by the letters or names of these. Two servers are told a note between
	// them when their words differ.
	Says   map[string]string
	Notes  []Note
	Labels Labels
}

// levels are those of hints.
func levels() []string { return []string{"note", "warning", "error"} }

// server reads what a document says of the server itself.
func (rd *reader) server(n *yaml.Node, f *file) Server {
	s := Server{Says: f.Says}
	if f.Recognise.Kind != 0 {
		rd.decode(&f.Recognise, &s.Recognise, "recognise")
	}
	if f.Clients.Kind != 0 {
		rd.decode(&f.Clients, &s.Clients, "clients")
	}
	if f.Labels.Kind != 0 {
		rd.decode(&f.Labels, &s.Labels, "labels")
	}
	s.Needs = each[Need](rd, f.Needs, "a need")
	s.Hints = each[Hint](rd, f.Hints, "a hint")
	s.Notes = each[Note](rd, f.Notes, "a note")
	for i, h := range s.Hints {
		at := position{f.Hints[i].Line, f.Hints[i].Column}
		if !slices.Contains(levels(), h.Level) || h.Code == "" || h.Text == "" {
			rd.fail(at, "hint %s: needs a code, a text and a level: %s", h.Code, strings.Join(levels(), ", "))
		}
		if h.Run != "" && !slices.Contains(hintKinds(), h.Run) {
			rd.fail(at, "hint %s: run: %q must be one of %s, or left out for a hint on bodies", h.Code, h.Run,
				strings.Join(hintKinds(), ", "))
		}
	}
	return s
}

func each[T any](rd *reader, nodes []yaml.Node, what string) []T {
	var out []T
	for i := range nodes {
		var v T
		rd.decode(&nodes[i], &v, what)
		out = append(out, v)
	}
	return out
}

// Sentinel is the values of some families, listed here or not, that mean there is none.
type Sentinel struct {
	Families []string    `yaml:"families"`
	Values   [][]float64 `yaml:"values"` // each one value, or the least and the largest of several
}

// Blank reports whether v is one of the values.
func (s Sentinel) Blank(v float64) bool {
	return slices.ContainsFunc(s.Values, func(r []float64) bool { return r[0] <= v && v <= r[len(r)-1] })
}

func (rd *reader) sentinels(nodes []yaml.Node) []Sentinel {
	out := each[Sentinel](rd, nodes, "sentinels")
	for i, s := range out {
		wrong := func(r []float64) bool { return len(r) == 0 || len(r) > 2 || !(r[0] <= r[len(r)-1]) }
		if len(s.Families) == 0 || len(s.Values) == 0 || slices.ContainsFunc(s.Values, wrong) {
			rd.fail(position{nodes[i].Line, nodes[i].Column}, "sentinels: needs families, and values: [[-1]] for one, "+
				"[[5, 9]] for those from 5 to 9")
			out[i].Values = nil
		}
	}
	return out
}

// Match reports whether a name is the pattern, or begins as it does up to a trailing *.
func Match(pattern, name string) bool {
	if start, any := strings.CutSuffix(pattern, "*"); any {
		return strings.HasPrefix(name, start)
	}
	return pattern == name
}

// MatchAny reports whether one of some patterns matches a name, in any of its spellings.
func MatchAny(patterns []string, spellings ...string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return slices.ContainsFunc(spellings, func(name string) bool { return Match(p, name) })
	})
}
