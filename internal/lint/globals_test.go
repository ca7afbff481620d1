package lint_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// checkGlobals wants package variables to be constants in all but name: error
// values, regexps, embedded files and tables. So a package variable
//
//   - has a value in its declaration, or a go:embed directive;
//   - is not a channel, an empty map made by make, or of package sync or
//     sync/atomic, which are useful only when they change;
//   - is never assigned to, incremented, emptied or pointed to anywhere else;
//     only a pointer to an element of a table is let pass.
//
// Nor may a package assign to variables of another; some libraries take
// pointers to theirs, so those pass. Declarations in tests (an
// -update flag) are free, assignments in them are not.
func checkGlobals(p *Package, report reporter) {
	for _, f := range p.code() {
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
				checkVarDecl(f, d, report)
			}
		}
	}
	for _, f := range p.Files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, target := range mutated(n) {
				_, address := n.(*ast.UnaryExpr)
				if name, foreign := f.globalName(target); name != "" && !(foreign && address) {
					report(f, n.Pos(), "package variable %s is changed or pointed to: keep the state in a struct that New returns",
						name)
				}
			}
			return true
		})
	}
}

func checkVarDecl(f *File, d *ast.GenDecl, report reporter) {
	for _, spec := range d.Specs {
		s := spec.(*ast.ValueSpec)
		if s.Names[0].Name == "_" || isEmbed(d.Doc) || isEmbed(s.Doc) {
			continue
		}
		if len(s.Values) == 0 {
			report(f, s.Pos(), "package variable %s has no value, so it is meant to change: keep it in a struct that New "+
				"returns", s.Names[0].Name)
		}
		for _, v := range s.Values {
			if isState(f, v) {
				report(f, s.Pos(), "package variable %s holds state: keep it in a struct that New returns", s.Names[0].Name)
			}
		}
	}
}

func isEmbed(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// isState recognises values that are of use only when they change.
func isState(f *File, v ast.Expr) bool {
	switch v := v.(type) {
	case *ast.UnaryExpr:
		return isState(f, v.X)
	case *ast.CompositeLit:
		return isSyncType(f, v.Type)
	case *ast.CallExpr:
		id, ok := v.Fun.(*ast.Ident)
		if !ok || len(v.Args) == 0 {
			return false
		}
		switch v.Args[0].(type) {
		case *ast.ChanType, *ast.MapType:
			return id.Name == "make"
		}
		return id.Name == "new"
	}
	return false
}

func isSyncType(f *File, t ast.Expr) bool {
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	sel, ok := t.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg := f.packageOf(sel.X)
	return pkg == "sync" || pkg == "sync/atomic"
}

// mutated returns the expressions that a node assigns to, empties or points to.
func mutated(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.UnaryExpr:
		if _, element := n.X.(*ast.IndexExpr); n.Op == token.AND && !element {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		id, ok := n.Fun.(*ast.Ident)
		if ok && len(n.Args) > 0 && (id.Name == "delete" || id.Name == "clear" || id.Name == "copy") {
			return n.Args[:1]
		}
	}
	return nil
}

// globalName returns the name of the package variable that an expression is a
// part of, "" if it is not one, and whether it is another package's.
func (f *File) globalName(x ast.Expr) (name string, foreign bool) {
	switch x := x.(type) {
	case *ast.Ident:
		if v := f.packageVar(x); v != nil {
			return v.Name(), false
		}
	case *ast.SelectorExpr:
		if pkg := f.packageOf(x.X); pkg != "" {
			return pkg + "." + x.Sel.Name, true
		}
		return f.globalName(x.X)
	case *ast.IndexExpr:
		return f.globalName(x.X)
	case *ast.SliceExpr:
		return f.globalName(x.X)
	case *ast.StarExpr:
		return f.globalName(x.X)
	case *ast.ParenExpr:
		return f.globalName(x.X)
	}
	return "", false
}

// packageVar returns the package-level variable that id names, of this package.
func (f *File) packageVar(id *ast.Ident) *types.Var {
	v, ok := f.info.Uses[id].(*types.Var)
	if !ok || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() {
		return nil
	}
	return v
}
