package lint_test

import (
	"go/ast"
	"slices"
	"strings"
)

// checkInit refuses init functions.
func checkInit(p *Package, report reporter) {
	for _, f := range p.Files {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				report(f, fn.Pos(), "func init hides work and order: call it from New or main")
			}
		}
	}
}

// checkExit refuses to end the process anywhere but in main.
func checkExit(p *Package, report reporter) {
	p.eachUse(func(f *File, sel *ast.SelectorExpr, pkg, name string) {
		ends := pkg == "os" && name == "Exit" ||
			pkg == "log" && (strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Panic"))
		if ends && !slices.Contains(exitFiles, f.Path) {
			report(f, sel.Pos(), "%s.%s outside %s: return an error", pkg, name, exitFiles[0])
		}
	})
}

// checkGoroutines lets only the owners start goroutines: by go, by a Go method
// (sync.WaitGroup, errgroup.Group), by time.AfterFunc or context.AfterFunc.
func checkGoroutines(p *Package, report reporter) {
	if p.inDirs(goroutineOwners) {
		return
	}
	for _, f := range p.code() {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if startsGoroutine(f, n) {
				report(f, n.Pos(), "%s may not start goroutines, only [%s]: let the caller decide", p.Dir,
					strings.Join(goroutineOwners, " "))
			}
			return true
		})
	}
}

func startsGoroutine(f *File, n ast.Node) bool {
	if _, ok := n.(*ast.GoStmt); ok {
		return true
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg := f.packageOf(sel.X)
	return sel.Sel.Name == "Go" && len(call.Args) == 1 && pkg == "" ||
		sel.Sel.Name == "AfterFunc" && (pkg == "time" || pkg == "context")
}

// checkSleep refuses time.Sleep, in tests too.
func checkSleep(p *Package, report reporter) {
	p.eachUse(func(f *File, sel *ast.SelectorExpr, pkg, name string) {
		if pkg == "time" && name == "Sleep" {
			report(f, sel.Pos(), "time.Sleep: select on a timer and the context, in tests use testing/synctest")
		}
	})
}

// checkPrint refuses output and global loggers in libraries.
func checkPrint(p *Package, report reporter) {
	if p.Name == "main" {
		return
	}
	p.eachUse(func(f *File, sel *ast.SelectorExpr, pkg, name string) {
		if !f.Test && isOutput(pkg, name) {
			report(f, sel.Pos(), "%s.%s in a library: return it, take an io.Writer, or an injected *slog.Logger", pkg, name)
		}
	})
}

// globalLog holds the functions of log/slog that use or set the global logger.
var globalLog = []string{"Debug", "DebugContext", "Info", "InfoContext", "Warn", "WarnContext", "Error", "ErrorContext",
	"Log", "LogAttrs", "With", "Default", "SetDefault"}

func isOutput(pkg, name string) bool {
	switch pkg {
	case "log":
		return true
	case "log/slog":
		return slices.Contains(globalLog, name)
	case "fmt":
		return strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan")
	case "os":
		return name == "Stdout" || name == "Stderr" || name == "Stdin"
	}
	return false
}

// checkContextField refuses contexts in structs.
func checkContextField(p *Package, report reporter) {
	for _, f := range p.code() {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			st, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range st.Fields.List {
				if sel, ok := field.Type.(*ast.SelectorExpr); ok && f.packageOf(sel.X) == "context" && sel.Sel.Name == "Context" {
					report(f, field.Pos(), "context.Context in a struct: pass it as the first parameter")
				}
			}
			return true
		})
	}
}

// eachUse calls visit for each name of an imported package, in all files.
func (p *Package) eachUse(visit func(f *File, sel *ast.SelectorExpr, pkg, name string)) {
	for _, f := range p.Files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if pkg := f.packageOf(sel.X); pkg != "" {
					visit(f, sel, pkg, sel.Sel.Name)
				}
			}
			return true
		})
	}
}
