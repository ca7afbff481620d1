package lint_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Module is the parsed Go source of one module: its own packages, without
// nested modules, testdata and hidden folders.
type Module struct {
	Path     string // as go.mod declares it
	Packages []*Package
	fset     *token.FileSet
}

// Package is one folder with Go files. Files of its external tests (package
// x_test) belong to it.
type Package struct {
	Dir    string // slash-separated, relative to the root; "." is the root
	Name   string // as the package clause of its files says, without "_test"
	Files  []*File
	module *Module
}

// File is one parsed file.
type File struct {
	Path  string // slash-separated, relative to the root
	Test  bool   // the name ends in _test.go
	Lines int
	long  []int // lines with more columns than the limit
	ast   *ast.File
	info  *types.Info
}

// Load parses every Go file of the module at the root of fsys.
func Load(fsys fs.FS) (*Module, error) {
	gomod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, fmt.Errorf("read module: %w", err)
	}
	m := &Module{Path: modulePath(gomod), fset: token.NewFileSet()}
	if m.Path == "" {
		return nil, errors.New("read go.mod: no module line")
	}
	err = fs.WalkDir(fsys, ".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if dir != "." && skipDir(fsys, dir) {
			return fs.SkipDir
		}
		return m.loadDir(fsys, dir)
	})
	if err != nil {
		return nil, fmt.Errorf("load module %s: %w", m.Path, err)
	}
	return m, nil
}

func modulePath(gomod []byte) string {
	for line := range bytes.Lines(gomod) {
		if words := bytes.Fields(line); len(words) == 2 && string(words[0]) == "module" {
			return string(words[1])
		}
	}
	return ""
}

// skipDir reports whether a folder is no part of the module.
func skipDir(fsys fs.FS, dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}

func (m *Module) loadDir(fsys fs.FS, dir string) error {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return err
	}
	p := &Package{Dir: dir, module: m}
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".go" {
			continue
		}
		name := path.Join(dir, e.Name())
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(m.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f := &File{Path: name, Test: strings.HasSuffix(name, "_test.go"), ast: parsed}
		for line := range bytes.Lines(src) {
			f.Lines++
			if utf8.RuneCount(bytes.TrimRight(line, "\n")) > maxColumns {
				f.long = append(f.long, f.Lines)
			}
		}
		p.Files = append(p.Files, f)
		if p.Name == "" || !f.Test {
			p.Name = strings.TrimSuffix(parsed.Name.Name, "_test")
		}
	}
	if len(p.Files) > 0 {
		p.resolve()
		m.Packages = append(m.Packages, p)
	}
	return nil
}

// resolve fills File.info. A package and its external tests are two scopes.
// Imports are empty packages, so type errors abound and mean nothing; which
// object an identifier names is found all the same.
func (p *Package) resolve() {
	units := map[string][]*File{}
	for _, f := range p.Files {
		units[f.ast.Name.Name] = append(units[f.ast.Name.Name], f)
	}
	for name, files := range units {
		info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
		var asts []*ast.File
		for _, f := range files {
			f.info = info
			asts = append(asts, f.ast)
		}
		conf := types.Config{Importer: emptyImporter{}, Error: func(error) {}}
		// The error is that imports are empty, which is our doing.
		_, _ = conf.Check(p.importPath()+"/"+name, p.module.fset, asts, info)
	}
}

func (p *Package) importPath() string { return path.Join(p.module.Path, p.Dir) }

// ours cuts the module path off an import path; ok is false for other modules.
func (m *Module) ours(importPath string) (dir string, ok bool) {
	if importPath == m.Path {
		return ".", true
	}
	return strings.CutPrefix(importPath, m.Path+"/")
}

// thirdParty reports whether an import path is neither ours nor the standard library.
func (m *Module) thirdParty(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	_, ours := m.ours(importPath)
	return !ours && strings.Contains(first, ".")
}

// emptyImporter gives every import an empty package of the likely name.
type emptyImporter struct{}

// Import returns an empty, complete package.
func (emptyImporter) Import(importPath string) (*types.Package, error) {
	p := types.NewPackage(importPath, likelyName(importPath))
	p.MarkComplete()
	return p, nil
}

// likelyName guesses the name of a package by the customs of import paths:
// a version at the end is skipped, "go-" and "-go" are dropped.
func likelyName(importPath string) string {
	parts := strings.Split(importPath, "/")
	last := parts[len(parts)-1]
	if _, err := strconv.Atoi(strings.TrimPrefix(last, "v")); err == nil && len(parts) > 1 {
		last = parts[len(parts)-2]
	}
	return strings.TrimSuffix(strings.TrimPrefix(last, "go-"), "-go")
}

// imports returns the import path of a spec.
func imports(spec *ast.ImportSpec) string {
	s, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser has let it through, so this is not reached
	}
	return s
}

// inDirs reports whether the package lies in one of the folders.
func (p *Package) inDirs(dirs []string) bool { return slices.Contains(dirs, p.Dir) }
