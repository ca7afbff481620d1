// Package lint holds the structure rules of this repository, as tests: "go test
// ./internal/lint" fails with file, line, rule and remedy when one is broken.
// The rules keep the tree as docs/architecture.md draws it: arrows point down
// only, every third party has one home, nothing hides in globals.
//
// To add a package, give it a row in layers (table_test.go). To add a dependency,
// give it a home in homes (table_test.go) and a page in docs/decisions. To add a
// rule, append it to rules and put a fixture that breaks it into testdata: a
// rule without a fixture that makes it fire fails the test.
//
// Files are parsed and type-checked one package at a time against empty
// imports. That is enough to tell a package from a variable and a local from a
// package variable, needs no network and no build, and works on a tree that
// does not compile. What needs real types (a mutation through a method, a
// goroutine started by a library) is not seen.
package lint
