package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"path/filepath"
)

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string // of imports in vendored code
	Module          *struct{ Main bool }
}

// typecheck finds out whether everything compiles for p, in a tenth of the time
// that a compiler takes: it reads all packages of the program, of ours with the
// bodies of functions, and checks their types.
func (r *release) typecheck(ctx context.Context, p platform) error {
	list, err := output(ctx, r.root, environment(p), "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	if err != nil {
		return fmt.Errorf("list packages for %s: %w", p, err)
	}
	known := imported{"unsafe": types.Unsafe}
	for d := json.NewDecoder(bytes.NewReader(list)); ; { // a package stands behind what it imports
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("list packages for %s: %w", p, err)
		}
		if l.ImportPath == "unsafe" {
			continue
		}
		if known[l.ImportPath], err = l.check(known, p); err != nil {
			return fmt.Errorf("check %s for %s: %w", l.ImportPath, p, err)
		}
	}
}

// imported are the packages that were checked, by import path.
type imported map[string]*types.Package

// renamed is an importer that heeds the import map of a package.
type renamed struct {
	known imported
	names map[string]string
}

func (r renamed) Import(path string) (*types.Package, error) {
	if to := r.names[path]; to != "" {
		path = to
	}
	if p := r.known[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not known", path)
}

func (l *listed) check(known imported, p platform) (*types.Package, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range l.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	ours := l.Module != nil && l.Module.Main
	c := types.Config{Importer: renamed{known, l.ImportMap}, IgnoreFuncBodies: !ours, FakeImportC: true, Sizes: types.SizesFor("gc", p.arch)}
	return c.Check(l.ImportPath, fset, files, nil)
}
