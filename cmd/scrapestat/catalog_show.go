package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scrapestat/scrapestat/catalog"
	"github.com/scrapestat/scrapestat/catalog/pack"
	"github.com/scrapestat/scrapestat/internal/texttab"
	"github.com/scrapestat/scrapestat/query"
)

func newCatalogShowCmd(std stdio) *cobra.Command {
	families, format := false, ""
	cmd := withCatalogs(&cobra.Command{
		Use:   "show PACK[.QUANTITY]|FAMILY|WORD... [flags]",
		Short: "Show what families and quantities mean, and how these are made",
		Example: "  scrapestat catalog show vllm.error_ratio\n  scrapestat catalog show ttft\n" +
			"  scrapestat catalog show sglang --families --format markdown",
		Args: atLeast(1, "PACK, FAMILY or WORD, for example vllm or ttft"),
	}, func(c *catalog.Catalog, args []string) error {
		if err := oneOf("format", "format", format, "text", "markdown", "json"); err != nil {
			return err
		}
		var known knowledge
		for _, arg := range args {
			if !known.add(c, arg, families) {
				return usagef("nothing is known of %q (see scrapestat catalog list)", arg)
			}
		}
		if format == "json" {
			return known.json(std.out)
		}
		return known.text(std.out, format == "markdown")
	})
	cmd.Flags().BoolVar(&families, "families", false, "the families too")
	cmd.Flags().StringVar(&format, "format", "text", "`form`: text, markdown or json")
	return cmd
}

// knowledge is what packs know that somebody asked for.
type knowledge struct {
	families   []*catalog.Family
	quantities []knownQuantity
}

type knownQuantity struct {
	*catalog.Rule
	pack  string
	notes []catalog.Caveat // beside the same quantity of other servers
}

// add takes PACK, PACK.QUANTITY, a family by any of its names, or a word of the vocabulary; false when there is none.
func (k *knowledge) add(c *catalog.Catalog, asked string, families bool) bool {
	name, quantity, _ := strings.Cut(asked, ".")
	id, isWord := query.ID(asked)
	before := len(k.families) + len(k.quantities)
	for _, f := range c.Families() {
		known, _ := c.Family(asked)
		if families && f.Engine == name || f == known || isWord && f.Canonical == id {
			k.families = append(k.families, f)
		}
	}
	for _, p := range c.Packs() {
		for i := range p.Rules {
			r := &p.Rules[i]
			if p.Name == name && (quantity == "" || r.Name == quantity) || isWord && r.Canonical == id {
				notes := c.Beside(catalog.Quantity{ID: r.Canonical, Engine: p.Name})
				k.quantities = append(k.quantities, knownQuantity{r, p.Name, notes})
			}
		}
	}
	return len(k.families)+len(k.quantities) > before
}

// text writes a paragraph for each, or tables in Markdown.
func (k *knowledge) text(w io.Writer, markdown bool) error {
	families, quantities := &texttab.Table{}, &texttab.Table{}
	families.Header("family", "type", "unit", "meaning")
	quantities.Header("quantity", "unit", "answers", "better", "canonical", "made of", "meaning")
	for _, f := range k.families {
		families.Row(f.Name, f.Type.String(), f.Unit, f.Meaning)
		if !markdown {
			fmt.Fprintf(w, "%s  %s%s\n  %s\n", f.Name, f.Type, word(", ", f.Unit), f.Meaning)
		}
	}
	for _, q := range k.quantities {
		quantities.Row(q.Name, q.Unit, q.Category.String(), q.Better.String(), q.Canonical, q.Text, q.Help)
		if !markdown {
			q.write(w)
		}
	}
	for i, t := range []*texttab.Table{families, quantities} {
		if markdown && len(t.Rows) > 0 {
			if i > 0 && len(families.Rows) > 0 {
				fmt.Fprintln(w)
			}
			if err := t.WriteMarkdown(w, texttab.Rule{Left: "---", Right: "---:"}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (q *knownQuantity) write(w io.Writer) {
	line := q.Name + "  " + q.Category.String() + word(", ", q.Unit)
	if q.Better != catalog.Neutral {
		line += ", " + q.Better.String() + " is better"
	}
	if q.Headline {
		line += ", headline"
	}
	fmt.Fprintf(w, "%s%s\n  %s\n  = %s\n", line, word(", canonical ", q.Canonical), q.Help, q.Text)
	for _, n := range q.notes {
		fmt.Fprintf(w, "  beside others: %s\n", n.Text)
	}
}

func (k *knowledge) json(w io.Writer) error {
	return texttab.NewObject("schema", "scrapestat.catalog", "schema_version", 1,
		"families", texttab.NewList(k.families, func(f **catalog.Family) texttab.Object {
			return texttab.NewObject("pack", (*f).Engine, "name", (*f).Name, "also", (*f).Aliases, "type", (*f).Type.String()).
				Known("unit", (*f).Unit).Known("canonical", (*f).Canonical).With("meaning", (*f).Meaning)
		}),
		"quantities", texttab.NewList(k.quantities, func(q *knownQuantity) texttab.Object {
			return texttab.NewObject("pack", q.pack, "name", q.Name).Known("unit", q.Unit).Known("canonical", q.Canonical).
				With("question", q.Category.String(), "better", q.Better.String(), "headline", q.Headline, "formula", q.Text,
					"help", q.Help, "notes", q.notes)
		})).WriteJSON(w)
}

// word is a text with what comes before it, "" for none.
func word(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

func newCatalogCheckCmd(std stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE... [flags]",
		Short: "Check files of packs, and tell each mistake with its place",
		Long: `Reads files of packs beside those in the program, and tells each mistake with line
and column. Ends with 3 when there is one.`,
		Example: "  scrapestat catalog check my.yaml",
		Args:    atLeast(1, "FILE, a pack in YAML"),
		RunE: func(_ *cobra.Command, args []string) error {
			problems, families, quantities, checks := 0, 0, 0, 0
			for _, path := range args {
				f, err := os.Open(path)
				if err != nil {
					return usagef("%w", err)
				}
				var text strings.Builder // what was read of it
				packs, found, err := catalog.CheckFile(path, io.TeeReader(f, &text))
				f.Close()
				if err != nil {
					return err
				}
				for i := range found {
					showProblem(std.out, &found[i], text.String())
				}
				problems += len(found)
				for _, p := range packs {
					families += len(p.Families)
					for _, q := range p.Quantities {
						if q.Category == catalog.Check {
							checks++
						} else {
							quantities++
						}
					}
				}
			}
			fmt.Fprintf(std.out, "%s, %s: %s, %s, %s\n", texttab.Count(len(args), "file"),
				texttab.Count(problems, "mistake"), counted(families, "family", "families"),
				counted(quantities, "quantity", "quantities"), texttab.Count(checks, "check"))
			if problems > 0 {
				return &codeError{exitBad, nil}
			}
			return nil
		},
	}
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// showProblem tells a mistake with the line that has it, and points at the column.
func showProblem(w io.Writer, p *pack.Problem, text string) {
	fmt.Fprintln(w, texttab.Escape(p.Error()))
	lines := strings.Split(text, "\n")
	if p.Line < 1 || p.Line > len(lines) {
		return
	}
	const before, width = 40, 72 // characters of a long line
	line := []rune(strings.TrimRight(lines[p.Line-1], "\r"))
	at := min(max(p.Column-1, 0), len(line))
	from := 0
	if len(line) > width {
		from = max(0, min(at-before, len(line)-width))
	}
	line = line[from:min(len(line), from+width)]
	mark := texttab.Width(texttab.Escape(string(line[:at-from])))
	fmt.Fprintf(w, "%6d | %s\n", p.Line, texttab.Escape(string(line)))
	if p.Column > 0 {
		fmt.Fprintf(w, "%6s | %s^\n", "", strings.Repeat(" ", mark))
	}
}
