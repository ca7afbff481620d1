package faults

import (
	_ "embed"
	"strings"
)

// Case is one case of the catalogue.
type Case struct {
	ID    string // a letter for the area, and a number
	Title string
}

//go:embed catalogue.txt
var catalogue string

// Catalogue returns all cases, in the order of their ids within each area.
func Catalogue() []Case {
	var out []Case
	for line := range strings.Lines(catalogue) {
		id, title, _ := strings.Cut(strings.TrimSpace(line), " ")
		out = append(out, Case{id, title})
	}
	return out
}

// Area is what the letter of an id stands for.
func Area(id string) string {
	return map[byte]string{'T': "Transport", 'P': "Exposition text", 'S': "Series and time", 'D': "Process, disk, crash",
		'E': "Exports, compare, gate", 'X': "Security of text"}[id[0]]
}
