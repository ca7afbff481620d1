// Package rehelp replaces the help texts of captured files, which are sentences of
// those who wrote the servers, by neutral ones:
//
//	go test ./internal/rehelp -run TestRewriteFiles -args testdata/bodies/*.prom testdata/runs/*/run.db
//
// A neutral text is made of the type and the name of the family and of the words
// of the old text that carry a unit, so that the unit that package units infers
// stays the same; a text for which it would not is an error. What is neutral
// already stays as it is. Everything else in a file stays byte for byte.
package rehelp_test

import (
	"bytes"
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/scrapestat/scrapestat/units"
)

// TestRewriteFiles rewrites the files that stand behind -args, by their path from the root.
func TestRewriteFiles(t *testing.T) {
	t.Chdir("../..")
	for _, path := range flag.Args() {
		if err := rewrite(path); err != nil {
			t.Errorf("rewrite %s: %v", path, err)
		}
	}
}

// rewrite replaces the help texts of one file, whose kind its name tells.
func rewrite(path string) error {
	text := rewriteBody
	switch filepath.Ext(path) {
	case ".db":
		return rewriteRecording(path)
	case ".json":
		text = rewriteExport
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if old, err = text(old); err != nil {
		return err
	}
	return os.WriteFile(path, old, 0o644)
}

// rewriteBody replaces the HELP lines of an exposition.
func rewriteBody(body []byte) ([]byte, error) {
	types := map[string]string{}
	lines := strings.SplitAfter(string(body), "\n")
	for _, line := range lines {
		if name, typ, ok := comment(line, "# TYPE "); ok {
			types[name] = typ
		}
	}
	for i, line := range lines {
		name, help, ok := comment(line, "# HELP ")
		if !ok || help == "" {
			continue
		}
		made, err := neutral(name, types[name], help)
		if err != nil {
			return nil, err
		}
		lines[i] = "# HELP " + name + " " + made + line[len(strings.TrimRight(line, "\r\n")):]
	}
	return []byte(strings.Join(lines, "")), nil
}

// comment splits a HELP or TYPE line.
func comment(line, prefix string) (name, text string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), prefix)
	if !ok {
		return "", "", false
	}
	name, text, _ = strings.Cut(rest, " ")
	return name, text, true
}

// rewriteExport replaces the descriptions of a JSON export, whose keys are sorted.
func rewriteExport(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := errors.Join(describe("", tree), e.Encode(tree))
	return append(bytes.TrimSpace(out.Bytes()), text[len(bytes.TrimSpace(text)):]...), err
}

// describe replaces the descriptions of all families below a node of that key.
func describe(key string, node any) error {
	object, _ := node.(map[string]any)
	if help, _ := object["description"].(string); help != "" {
		typ, _ := object["type"].(string)
		made, err := neutral(key, typ, help)
		if err != nil {
			return err
		}
		object["description"] = made
	}
	for k, n := range object {
		if err := describe(k, n); err != nil {
			return err
		}
	}
	return nil
}

// rewriteRecording replaces the help texts of a recording and leaves none of the
// old ones in pages that are no longer used.
func rewriteRecording(path string) (err error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	made, err := neutralRows(db)
	if err != nil || len(made) == 0 {
		return err
	}
	for id, text := range made {
		if _, err := db.Exec("UPDATE family SET help = ? WHERE id = ?", text, id); err != nil {
			return err
		}
	}
	_, err = db.Exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// neutralRows returns the texts of a recording that change, by their rows.
func neutralRows(db *sql.DB) (map[int64]string, error) {
	rows, err := db.Query("SELECT id, name, type, help FROM family WHERE help <> ''")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	made := map[int64]string{}
	for rows.Next() {
		var id int64
		var name, typ, help string
		if err := rows.Scan(&id, &name, &typ, &help); err != nil {
			return nil, err
		}
		text, err := neutral(name, typ, help)
		if err != nil {
			return nil, err
		}
		if text != help {
			made[id] = text
		}
	}
	return made, rows.Err()
}

// unitWord is a unit as help texts write it.
const unitWord = `(?:(?:milli|micro|nano)?seconds?|[mnuµ]?s|minutes?|hours?|(?:kilo|mega|giga|kibi|mebi|gibi)?bytes?` +
	`|[KMGT]i?B|tokens?|requests?|watts?|joules?|celsius|hertz|percent|%)(?:/s(?:ec(?:ond)?)?\b)?`

// carriers are the words of a help text that carry a unit: a unit after "in", "unit:"
// or an opening parenthesis, and a range of values.
var carriers = regexp.MustCompile(`(?i)\(in [^\s)]+\)|\b(?:in ` + unitWord + `(?:\b|$)|unit: \w+)|\(` + unitWord +
	`\b\)?` +
	`|[([]?\b(?:0(?:\.0)?(?: ?(?:to|-|–|—) ?)|1 (?:means|is|equals?|=) )\d+(?:\.\d+)?(?: ?%| percent)?[)\]]?`)

// marker is what the catalogue recognises a TorchServe by that has had no request yet.
const marker = "Torchserve prometheus "

// neutral returns the text that stands for help, the same for the same arguments
// and for its own result.
func neutral(name, typ, help string) (string, error) {
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == ':' })
	text := cmp.Or(typ, "family") + " " + strings.Join(words, " ")
	if strings.HasPrefix(help, marker) {
		text = marker + text
	}
	for _, unit := range carriers.FindAllString(help, -1) {
		if !strings.Contains(text, ", "+unit) {
			text += ", " + unit
		}
	}
	if units.Infer(name, help) != units.Infer(name, text) ||
		units.InferExtended(name, help, "") != units.InferExtended(name, text, "") {
		return "", fmt.Errorf("family %s: %q has another unit than %q", name, text, help)
	}
	return text, nil
}
