package html

import "github.com/scrapestat/scrapestat/summary"

// headline says that a quantity is one that people ask for first.
func headline(d *summary.Derived) bool { return d.Pack != "perf_analyzer" && d.Status.Defined() }

// helpOf is what the catalog says of a quantity.
func helpOf(d *summary.Derived) string { return "" }
