package lint_test

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// checkLayers holds the imports among our packages against the table.
func checkLayers(p *Package, report reporter) {
	row, known := layers[p.Dir]
	if !known {
		report(p.Files[0], p.Files[0].ast.Package,
			"package %s has no row in the import table: add one to layers in table_test.go and to docs/architecture.md", p.Dir)
		return
	}
	inTests := reach(row)
	for _, f := range p.Files {
		for _, spec := range f.ast.Imports {
			dir, ours := p.module.ours(imports(spec))
			if !ours || dir == p.Dir || slices.Contains(row, everything) || slices.Contains(row, dir) {
				continue
			}
			if f.Test && (inTests[dir] || slices.Contains(testSupport, dir)) {
				continue
			}
			report(f, spec.Pos(),
				"%s may not import %s, only [%s]: move the code down, declare an interface where it is used, or wire it in cmd",
				p.Dir, dir, strings.Join(row, " "))
		}
	}
}

// reach returns the packages of a row and all that they may import in turn.
func reach(row []string) map[string]bool {
	seen := map[string]bool{}
	for todo := slices.Clone(row); len(todo) > 0; {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[dir] {
			seen[dir] = true
			todo = append(todo, layers[dir]...)
		}
	}
	return seen
}

// checkHomes holds third-party imports against their homes.
func checkHomes(p *Package, report reporter) {
	for _, f := range p.Files {
		for _, spec := range f.ast.Imports {
			target := imports(spec)
			if !p.module.thirdParty(target) {
				continue
			}
			in := homesOf(target)
			switch {
			case in == nil:
				report(f, spec.Pos(), "%s has no home: a new dependency needs a line in homes of table_test.go and a page in "+
					"docs/decisions", target)
			case !isHome(in, p, f):
				report(f, spec.Pos(), "%s may be imported only in [%s]: use that package's API instead", target,
					strings.Join(in, " "))
			}
		}
	}
}

// homesOf returns the homes of the longest entry that covers the import path.
func homesOf(importPath string) []string {
	var best home
	for _, h := range homes {
		if (importPath == h.module || strings.HasPrefix(importPath, h.module+"/")) && len(h.module) > len(best.module) {
			best = h
		}
	}
	return best.in
}

// isHome reports whether a file lies at home; tests lie where their package does.
func isHome(in []string, p *Package, f *File) bool {
	return slices.ContainsFunc(in, func(h string) bool {
		return h == p.Dir || h == f.Path || f.Test && (h == anyTest || path.Dir(h) == p.Dir)
	})
}

// checkImportForm wants no dot imports and three groups: standard library,
// third parties, ours.
func checkImportForm(p *Package, report reporter) {
	for _, f := range p.Files {
		last, lastLine := 0, 0
		for _, spec := range f.ast.Imports {
			if spec.Name != nil && spec.Name.Name == "." {
				report(f, spec.Pos(), "dot import of %s: name the package where it is used", imports(spec))
			}
			group, line := p.module.group(spec), p.module.fset.Position(spec.Pos()).Line
			if last != 0 && (group < last || group > last && line == lastLine+1) {
				report(f, spec.Pos(),
					"import of %s out of place: standard library, third parties, ours, with an empty line between", imports(spec))
			}
			last, lastLine = group, line
		}
	}
}

// group ranks an import: 1 standard, 2 third party, 3 ours.
func (m *Module) group(spec *ast.ImportSpec) int {
	target := imports(spec)
	if m.thirdParty(target) {
		return 2
	}
	if _, ours := m.ours(target); ours {
		return 3
	}
	return 1
}
