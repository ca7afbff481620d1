package lint_test

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// checkFileSize limits the lines of a file.
func checkFileSize(p *Package, report reporter) {
	for _, f := range p.Files {
		limit := maxFileLines
		if f.Test {
			limit = maxTestFileLines
		}
		if f.Lines > limit {
			report(f, f.ast.Package, "file has %d lines, the limit is %d: split it by noun", f.Lines, limit)
		}
	}
}

// checkColumns limits the length of lines.
func checkColumns(p *Package, report reporter) {
	for _, f := range p.Files {
		for _, line := range f.long {
			report(f, p.module.fset.File(f.ast.Pos()).LineStart(line), "line has more than %d columns: break it", maxColumns)
		}
	}
}

var talkingComment = regexp.MustCompile(`\bsays\s+(that|whether)\b`)

// checkComments wants the words of the field for a function that gives a bool.
func checkComments(p *Package, report reporter) {
	for _, f := range p.Files {
		for _, group := range f.ast.Comments {
			if m := talkingComment.FindString(group.Text()); m != "" {
				report(f, group.Pos(), "comment with %q: write \"reports whether\", or what it is", m)
			}
		}
	}
}

// checkFuncSize limits the lines of a function, from func to the closing brace.
func checkFuncSize(p *Package, report reporter) {
	for _, f := range p.code() {
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := p.module.lines(fn); n > maxFuncLines {
				report(f, fn.Pos(), "function %s has %d lines, the limit is %d: give its steps names", fn.Name.Name, n,
					maxFuncLines)
			}
		}
	}
}

func (m *Module) lines(n ast.Node) int {
	return m.fset.Position(n.End()).Line - m.fset.Position(n.Pos()).Line + 1
}

// code returns the files that are not tests.
func (p *Package) code() []*File {
	return slices.DeleteFunc(slices.Clone(p.Files), func(f *File) bool { return f.Test })
}

// checkNames refuses names that say nothing and packages named unlike their folder.
func checkNames(p *Package, report reporter) {
	for _, f := range p.Files {
		base := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.Path), ".go"), "_test")
		if slices.Contains(vagueFiles, base) {
			report(f, f.ast.Package, "file name %q says nothing: name it after the noun it is about", path.Base(f.Path))
		}
	}
	first := p.Files[0]
	folder := path.Base(p.Dir)
	for _, part := range strings.Split(p.Dir, "/") {
		if slices.Contains(vagueFolders, part) {
			report(first, first.ast.Package, "folder name %q says nothing: name it after its one job", part)
		}
	}
	if p.Name != folder && p.Name != "main" && p.Dir != "." {
		report(first, first.ast.Package, "package %s lies in folder %s: give both the same name", p.Name, folder)
	}
}

// checkTestPackage wants tests outside the package they test, so that they use
// what a caller has. The exceptions carry a name that asks for a reason.
func checkTestPackage(p *Package, report reporter) {
	for _, f := range p.Files {
		name := path.Base(f.Path)
		if !f.Test || p.Name == "main" || strings.HasSuffix(f.ast.Name.Name, "_test") ||
			name == "export_test.go" || strings.HasSuffix(name, "_internal_test.go") {
			continue
		}
		report(f, f.ast.Package, "test of package %s from within: test its API from outside, or call the file "+
			"*_internal_test.go and say why", p.Name)
	}
}

// checkPackageDoc wants exactly one package comment, in a file that is no test.
func checkPackageDoc(p *Package, report reporter) {
	code := p.code()
	if len(code) == 0 {
		return
	}
	begin, documented := "Package "+p.Name+" ", false
	if p.Name == "main" {
		begin = "Command "
	}
	for _, f := range code {
		if f.ast.Doc == nil {
			continue
		}
		switch text := f.ast.Doc.Text(); {
		case text == "": // only directives, such as go:build
			continue
		case !strings.HasPrefix(text, begin):
			report(f, f.ast.Doc.Pos(), "package comment must begin with %q", begin)
		case documented:
			report(f, f.ast.Doc.Pos(), "second package comment: keep one, in doc.go when it is long")
		}
		documented = true
	}
	if !documented {
		report(code[0], code[0].ast.Package,
			"package %s has no package comment: say in doc.go what it is for, the loop a caller writes, who owns memory", p.Name)
	}
}

var todoWord = regexp.MustCompile(`\b(TODO|FIXME)\b`)

// checkTodo refuses reminders without an issue.
func checkTodo(p *Package, report reporter) {
	for _, f := range p.Files {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if todoWord.MatchString(c.Text) && !strings.Contains(c.Text, "#") {
					report(f, c.Pos(), "reminder without an issue: do it, or name the issue as #N")
				}
			}
		}
	}
}
