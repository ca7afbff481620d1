// Package quantity is the language of derived quantities: formulas over what series gained, checked and bound once and
// then evaluated for each stretch of time.
//
//	e, err := quantity.Parse("mean(e2e_request_latency_seconds)", types)
//	f := quantity.Formula{Is: e, By: []string{"handler"}}
//	for _, b := range f.Bind(source) { // once for all stretches of the same series
//		if v, ok := b.Eval(stretch); ok && v.Status.Defined() {
//			fmt.Println(b.Labels, v.Value)
//		}
//	}
//
// A term is added up over its series by the rule of its family. What is missing is never zero: it makes the result
// [Missing], a denominator of 0 makes it [ZeroDenominator], and a formula none of whose input is there has no result.
// Otherwise the worst status of the parts wins. Formulas, series and results are not for several goroutines at a time;
// an [Expr] is immutable and is.
package quantity
