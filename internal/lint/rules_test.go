package lint_test

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
)

// Finding is one broken rule at one place.
type Finding struct {
	File string // slash-separated, relative to the root of the module
	Line int    // from 1
	Rule string // the name of the rule, a stable word
	Text string // what is wrong and how to mend it
}

// String returns the finding as compilers print errors: file:line: text (rule).
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s (%s)", f.File, f.Line, f.Text, f.Rule)
}

// rule looks at one package and reports what breaks it.
type rule struct {
	name  string
	check func(p *Package, report reporter)
}

// reporter takes one finding of the rule at hand.
type reporter func(f *File, pos token.Pos, format string, args ...any)

var rules = []rule{
	{"layer", checkLayers},
	{"home", checkHomes},
	{"import-form", checkImportForm},
	{"file-size", checkFileSize},
	{"func-size", checkFuncSize},
	{"name", checkNames},
	{"columns", checkColumns},
	{"comment", checkComments},
	{"test-package", checkTestPackage},
	{"package-doc", checkPackageDoc},
	{"exported-doc", checkExportedDoc},
	{"todo", checkTodo},
	{"foreign-api", checkForeignAPI},
	{"init", checkInit},
	{"exit", checkExit},
	{"goroutine", checkGoroutines},
	{"sleep", checkSleep},
	{"print", checkPrint},
	{"context-field", checkContextField},
	{"global", checkGlobals},
}

// RuleNames returns the names of all rules in the order they are checked.
func RuleNames() []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.name
	}
	return names
}

// Check applies every rule to every package and returns the findings ordered
// by file, line and rule; none when the tree is clean.
func (m *Module) Check() []Finding {
	var found []Finding
	for _, p := range m.Packages {
		for _, r := range rules {
			r.check(p, func(f *File, pos token.Pos, format string, args ...any) {
				found = append(found, Finding{f.Path, m.fset.Position(pos).Line, r.name, fmt.Sprintf(format, args...)})
			})
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	return found
}
