package lint_test

import (
	"go/ast"
	"go/types"
	"strings"
)

// checkExportedDoc wants a comment on every exported identifier at package
// level and on every method of an exported type; of functions and types the
// comment begins with the name.
func checkExportedDoc(p *Package, report reporter) {
	for _, f := range p.code() {
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) {
					wantDoc(f, d.Name, d.Doc, report)
				}
			case *ast.GenDecl:
				checkGenDoc(f, d, report)
			}
		}
	}
}

func checkGenDoc(f *File, d *ast.GenDecl, report reporter) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			doc := s.Doc
			if doc == nil && len(d.Specs) == 1 {
				doc = d.Doc
			}
			if s.Name.IsExported() {
				wantDoc(f, s.Name, doc, report)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
					report(f, name.Pos(), "exported %s has no comment: say what it means, its unit, its zero value", name.Name)
				}
			}
		}
	}
}

func wantDoc(f *File, name *ast.Ident, doc *ast.CommentGroup, report reporter) {
	if doc == nil || doc.Text() == "" {
		report(f, name.Pos(), "exported %s has no comment: say what it does, its units, errors, ownership, concurrency",
			name.Name)
		return
	}
	words := strings.Fields(doc.Text())
	if len(words) > 1 && (words[0] == "A" || words[0] == "An" || words[0] == "The") {
		words = words[1:]
	}
	if strings.TrimRight(words[0], ",.:'s") != strings.TrimRight(name.Name, "s") {
		report(f, name.Pos(), "comment of %s must begin with its name", name.Name)
	}
}

// exportedReceiver reports whether fn is a function, or a method of an exported type.
func exportedReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return true
	}
	name := receiverName(fn.Recv.List[0].Type)
	return name == nil || name.IsExported()
}

func receiverName(t ast.Expr) *ast.Ident {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiverName(t.X)
	case *ast.IndexExpr:
		return receiverName(t.X)
	case *ast.IndexListExpr:
		return receiverName(t.X)
	case *ast.Ident:
		return t
	}
	return nil
}

// checkForeignAPI wants no type of a third party in an exported signature,
// type or variable of a package that others can import.
func checkForeignAPI(p *Package, report reporter) {
	if p.Name == "main" || p.Dir == "internal/sourcetest" {
		return
	}
	for _, f := range p.code() {
		walk := func(owner string, n ast.Node) { reportForeign(p, f, owner, n, report) }
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) {
					walk(d.Name.Name, d.Type)
				}
			case *ast.GenDecl:
				walkExported(d, walk)
			}
		}
	}
}

// walkExported hands on the parts of a declaration that other packages see.
func walkExported(d *ast.GenDecl, walk func(owner string, n ast.Node)) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				walk(s.Name.Name, s.Type)
			}
		case *ast.ValueSpec:
			if s.Type != nil && s.Names[0].IsExported() {
				walk(s.Names[0].Name, s.Type)
			}
		}
	}
}

// reportForeign reports third-party types below n, less unexported fields.
func reportForeign(p *Package, f *File, owner string, n ast.Node, report reporter) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, field := range n.Fields.List {
				if len(field.Names) == 0 || field.Names[0].IsExported() {
					reportForeign(p, f, owner, field.Type, report)
				}
			}
			return false
		case *ast.SelectorExpr:
			if path := f.packageOf(n.X); p.module.thirdParty(path) {
				report(f, n.Pos(), "API of %s shows a type of %s: hide it behind a type or interface of ours", owner, path)
			}
		}
		return true
	})
}

// packageOf returns the import path when x is the name of an imported package.
func (f *File) packageOf(x ast.Expr) string {
	id, ok := x.(*ast.Ident)
	if !ok {
		return ""
	}
	if name, ok := f.info.Uses[id].(*types.PkgName); ok {
		return name.Imported().Path()
	}
	return ""
}
