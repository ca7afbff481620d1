// Package pack reads what is known of a server from YAML: its families, and the quantities that follow from them.
//
//	packs, problems := pack.Read("my.yaml", file)
//	set, more := pack.Join(packs...)
//
// [Read] checks a file by itself; [Join] puts packs together, finds the names of families and checks the formulas. A
// [Problem] tells the file, line and column. Packs and sets are immutable and safe for concurrent use.
package pack
