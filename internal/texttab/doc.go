// Package texttab holds tables and writes them as aligned text, Markdown, CSV and JSON.
//
//	var t texttab.Table
//	t.Header("TARGET", "SCRAPES", "LOST")
//	t.Right(1, 2)
//	t.Row("http://10.0.0.3:8000/metrics", "180", "0")
//	t.WriteTo(os.Stdout)
//
// Cells are data from strangers: control characters, invisible ones and broken UTF-8 are shown as escapes ([Escape]),
// so a cell is one line, cannot move the cursor and cannot reorder its neighbours. Nothing is coloured.
//
// Widths count terminal columns in a simple way: a combining mark takes none, a character of the East Asian wide
// blocks and of the emoji blocks takes two, any other takes one. Terminals differ on emoji sequences and flags; such a
// row may be off by a column.
package texttab
