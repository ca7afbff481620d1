package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licenceName matches the files that have to go with a binary.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

// licences returns the terms of all that the binary for p is made of: of Go
// itself, and of each module, with those of parts that came from elsewhere.
func (r *release) licences(ctx context.Context, p platform) ([]byte, error) {
	const form = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}"
	list, err := output(ctx, r.root, environment(p), "go", "list", "-deps", "-f", form, "./cmd/scrapestat")
	if err != nil {
		return nil, fmt.Errorf("list the modules for %s: %w", p, err)
	}
	goRoot, err := output(ctx, r.root, nil, "go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(goRoot)), "\n")
	// Files by module, as "NAME VERSION", and name inside it.
	found := map[string]map[string]string{}
	add := func(module, top, folder string) error {
		if found[module] == nil {
			found[module] = map[string]string{}
		}
		return collect(found[module], top, folder)
	}
	if err := add("Go "+strings.TrimPrefix(version, "go"), root, root); err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(list)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) != 4 {
			continue // of the standard library, or ours
		}
		if err := add(f[0]+" "+f[1], f[2], f[3]); err != nil {
			return nil, err
		}
	}
	return writeLicences(found)
}

// collect adds the texts in a folder and in those above it, up to top.
func collect(texts map[string]string, top, folder string) error {
	for {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return fmt.Errorf("look for licences: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() || !licenceName.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
				continue
			}
			path := filepath.Join(folder, e.Name())
			name, err := filepath.Rel(top, path)
			text, failed := os.ReadFile(path)
			if err := errors.Join(err, failed); err != nil {
				return fmt.Errorf("read licence: %w", err)
			}
			texts[filepath.ToSlash(name)] = string(text)
		}
		if folder == top || len(folder) <= len(top) {
			return nil
		}
		folder = filepath.Dir(folder)
	}
}

func writeLicences(found map[string]map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("What scrapestat is made of, and its terms.\n")
	for _, module := range slices.Sorted(maps.Keys(found)) {
		if len(found[module]) == 0 {
			return nil, fmt.Errorf("look for licences: %s has none", module)
		}
		for _, name := range slices.Sorted(maps.Keys(found[module])) {
			text := strings.TrimRight(strings.ReplaceAll(found[module][name], "\r\n", "\n"), "\n")
			fmt.Fprintf(&b, "\n==== %s: %s\n\n%s\n", module, name, text)
		}
	}
	return b.Bytes(), nil
}
