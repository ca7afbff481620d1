// Package catalog knows what the families of known servers mean, and derives from them the quantities that people ask
// for.
//
// A [Catalog] is made of packs, one file per engine in packs/, and those of users (package pack). [Catalog.Family]
// finds a family under all the names that the generations of a server gave it; rules speak of the newest, so that they
// hold for all.
//
// A derived quantity is a [Rule]: a formula (package quantity), or one of a few algorithms here that no formula
// expresses. Rules that belong together are a [Pack], which says by which labels results are kept apart: model and
// version, say. [Catalog.Derive] applies all packs to what one endpoint gained over a stretch of time, be it the window
// or a slice of it:
//
//	for _, d := range c.Derive(catalog.Interval{Seconds: 10, Gains: gains}, catalog.Window) {
//		if d.Status.Defined() {
//			fmt.Println(d.Name, d.Labels, d.Value, d.Unit)
//		}
//	}
//
// A sum is taken after the gains, a quotient is one of sums and never a mean of quotients, and what is missing is
// never zero: a quantity some of whose input is missing has the status [Missing], one that would divide by zero has
// [ZeroDenominator], and one that has no input at all is not listed.
//
// [Engines] recognises the programs behind a body by its families, before a run.
//
// To add an engine, write packs/<engine>.yaml; make golden then renews packs.json, which is what the program has. The
// package opens no files and knows nothing of how gains are made.
package catalog
