// Package doctor looks at a target before a run: what it is, what is wrong with it and what to do about it, and how
// often it may be scraped.
//
//	p, err := scrape.NewProber(target, scrape.Options{})
//	r := doctor.Examine(ctx, target.Public(), p, doctor.Options{})
//	err = doctor.Text(os.Stdout, []*doctor.Report{r})
//
// An examination asks for the metrics once in each format and with gzip, and a few times more to see what an answer
// costs and how much of it changes. When there are no metrics it tries the other known path once, and asks the few
// paths by which an engine says what it is.
//
// What is known of engines in general is in package catalog; the rules here say what a body or an answer means for the
// person who is about to measure. A rule only looks at what the target sent, and says how certain it is: a flag is
// called missing when nothing else explains what is seen.
package doctor
