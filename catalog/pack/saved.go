package pack

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// savedPack is a pack as a program holds it that has no time to read YAML.
type savedPack struct {
	*Pack
	File          string
	SavedPatterns []savedPattern
	SavedFamilies []savedFamily
	SavedEdges    map[string]text
	Formulas      []savedFormulas // by quantity
}

type savedPattern struct{ Engine, Text, Meaning string }

type savedFamily struct {
	*Family
	Stem string
}

type savedFormulas struct {
	Is, When, Enabled, Left, Right, Edges text
	At                                    position
}

// Save writes packs that were read without a problem for Load, a line each.
func Save(w io.Writer, packs []*Pack) error {
	var out []savedPack
	for _, p := range packs {
		c := *p
		s := savedPack{Pack: &c, File: p.file, SavedEdges: p.edges}
		for _, f := range p.Families {
			s.SavedFamilies = append(s.SavedFamilies, savedFamily{f, f.stem})
		}
		for _, x := range p.Patterns {
			s.SavedPatterns = append(s.SavedPatterns, savedPattern{x.Engine, x.Text, x.Meaning})
		}
		for _, q := range p.Quantities {
			s.Formulas = append(s.Formulas, savedFormulas{q.is, q.when, q.enabled, q.left, q.right, q.edges, q.at})
		}
		c.Families, c.Patterns = nil, nil
		out = append(out, s)
	}
	for i := range out {
		err := json.MarshalWrite(w, &out[i], json.OmitZeroStructFields(true), json.Deterministic(true),
			jsonv1.FormatDurationAsNano(true))
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return nil
}

// Load returns the packs that Save wrote.
func Load(data []byte) ([]*Pack, error) {
	var out []*Pack
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	for {
		var s savedPack
		if err := json.UnmarshalDecode(dec, &s, jsonv1.FormatDurationAsNano(true)); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		p := s.Pack
		p.file, p.edges = s.File, s.SavedEdges
		p.lines = make([]position, len(s.SavedFamilies))
		for _, f := range s.SavedFamilies {
			f.home, f.stem = p.Name, f.Stem
			p.Families = append(p.Families, f.Family)
		}
		for _, x := range s.SavedPatterns {
			p.Patterns = append(p.Patterns, Pattern{x.Engine, x.Text, x.Meaning, matcher(x.Text)})
		}
		for i, q := range p.Quantities {
			f := s.Formulas[i]
			q.is, q.when, q.enabled, q.left, q.right, q.edges, q.at = f.Is, f.When, f.Enabled, f.Left, f.Right, f.Edges, f.At
		}
		out = append(out, p)
	}
}
