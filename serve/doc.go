// Package serve answers Prometheus' HTTP API and PromQL over recorded runs, finished or live, without converting them.
//
//	s, err := serve.New(serve.Options{Runs: []serve.Run{{Name: "before", Recording: run}}})
//	result, err := s.Query(ctx, serve.Request{Expr: "sum(rate(x_total[1m]))"})
//	http.Handle("/", s.Handler())
//
// The engine is Prometheus' own, over columns that are made of a recording when a query first asks for a family. Names
// and labels are those that the server exposed; series end and come back as in Prometheus (design document serve.md).
package serve
