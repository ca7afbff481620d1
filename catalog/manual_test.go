package catalog_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/catalog"
)

var update = flag.Bool("update", false, "rewrite docs/data/derived.md and packs.json")

// TestManual keeps the tables of docs/data/derived.md what the catalog is.
func TestManual(t *testing.T) {
	const path, mark = "../docs/data/derived.md", "<!-- what follows is generated -->\n"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(old), mark)
	if !ok {
		t.Fatalf("%s has no line %q", path, mark)
	}
	want := head + mark + manual(known(t))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(old) != want {
		t.Errorf("%s is stale: run go test ./catalog -run TestManual -update", path)
	}
}

func manual(c *catalog.Catalog) string {
	var b strings.Builder
	cell := func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", "\\|"), "\n", " ") }
	b.WriteString("\n## Quantities\n")
	title := ""
	for _, p := range catalog.Packs() {
		heading := p.Title
		if heading == "" {
			heading = "Triton statistics"
		}
		if p.Name == catalog.TritonPerfAnalyzerPack {
			continue // docs/triton.md
		}
		if heading != title {
			fmt.Fprintf(&b, "\n### %s (`%s`)\n\n| quantity | unit | answers | better | made of | meaning "+
				"|\n|---|---|---|---|---|---|\n", heading, p.Name)
			title = heading
		}
		for i := range p.Rules {
			r := &p.Rules[i]
			if r.Name == "" {
				continue
			}
			name := "`" + r.Name + "`"
			if r.Headline {
				name = "★ " + name
			}
			if r.By != nil {
				name += " by " + strings.Join(r.By, ", ")
			}
			made := r.Text
			if made != "" {
				made = "`" + cell(made) + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", name, r.Unit, r.Category, r.Better, made, cell(r.Help))
		}
	}
	b.WriteString("\n## The same quantity of different engines\n\n| id | meaning | engine: family, or derived quantity " +
		"| notes |\n|---|---|---|---|\n")
	for _, id := range catalog.Canonicals() {
		var of, letters []string
		engines := map[string]bool{}
		for _, f := range c.Families() {
			if f.Canonical == id.ID {
				of = append(of, f.Engine+": `"+f.Name+"`")
				engines[f.Engine] = true
			}
		}
		for _, p := range catalog.Packs() {
			for i := range p.Rules {
				if r := &p.Rules[i]; r.Canonical == id.ID {
					of = append(of, p.Name+": "+r.Name)
					engines[p.Name] = true
				}
			}
		}
		for a := range engines {
			for e := range engines {
				for _, n := range catalog.Embedded().Comparability(catalog.Quantity{ID: id.ID, Engine: a},
					catalog.Quantity{ID: id.ID, Engine: e}) {
					letters = append(letters, n.Letter)
				}
			}
		}
		slices.Sort(letters)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", id.ID, id.Meaning, strings.Join(of, "<br>"),
			strings.Join(slices.Compact(letters), " "))
	}
	b.WriteString("\nThe notes apply between two engines that mean different things:\n\n")
	for _, n := range catalog.Embedded().AllCaveats() {
		fmt.Fprintf(&b, "- (%s) %s\n", n.Letter, n.Text)
	}
	list := func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
	fmt.Fprintf(&b, "\n## Labels\n\n- Replicas of a server, aggregated over unless asked for: %s.\n- Kept: %s.\n- Left "+
		"out when series of two runs are matched: %s, and all labels of `*_info`.\n",
		list(catalog.Embedded().ReplicaLabels()),
		list(catalog.Embedded().KeptLabels()), list(catalog.Embedded().VolatileLabels()))
	return b.String()
}

// The example of a user's table works.
func TestManualExample(t *testing.T) {
	text, err := os.ReadFile("../docs/derived.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```yaml\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok {
		t.Fatal("no example")
	}
	c, err := catalog.New(strings.NewReader(block))
	if err != nil {
		t.Fatal(err)
	}
	if f, ok := c.Family("my_wait_ms"); !ok || f.Name != "my:wait_seconds" || f.Canonical != "queue_s" ||
		len(c.Inputs().SLO) != 2 {
		t.Errorf("the example says %+v, %+v", f, c.Inputs())
	}
}
