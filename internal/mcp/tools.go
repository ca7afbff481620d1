package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

// paging is the argument that all tools have.
type paging struct {
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the answer before, beside the same arguments"`
}

type runsArgs struct {
	Root string `json:"root,omitempty" jsonschema:"only runs below this root of the server"`
	paging
}

type showArgs struct {
	Run    string `json:"run" jsonschema:"path of a run; RUN@traffic, RUN@high/2 or RUN@30s..90s is a part of it"`
	Window string `json:"window,omitempty" jsonschema:"a part of the run: traffic, a phase, 30s..90s, warmup=10s"`
	paging
}

type queryArgs struct {
	Runs    []string `json:"runs" jsonschema:"paths of runs, as in base=RUN or RUN@high/2"`
	Metrics []string `json:"metrics" jsonschema:"quantities (ttft, kv_usage), families, or globs"`
	Stats   []string `json:"stats,omitempty" jsonschema:"p50, p99.9, avg, rate, count; all without"`
	By      []string `json:"by,omitempty" jsonschema:"labels that series taken together agree in; target is one"`
	Every   string   `json:"every,omitempty" jsonschema:"also timeslices of this width, such as 10s"`
	Window  string   `json:"window,omitempty" jsonschema:"a part of all runs, as of show"`
	paging
}

type samplesArgs struct {
	Run    string `json:"run" jsonschema:"path of a run"`
	Metric string `json:"metric" jsonschema:"a family, or a quantity such as running"`
	Target string `json:"target,omitempty" jsonschema:"alias or address of a target; all without"`
	From   int64  `json:"from" jsonschema:"nanoseconds since 1970, as start_ns of other answers"`
	To     int64  `json:"to" jsonschema:"nanoseconds since 1970, up to which samples are wanted"`
	paging
}

type compareArgs struct {
	Base  string `json:"base" jsonschema:"path of the run before"`
	Other string `json:"other" jsonschema:"path of the run after"`
	All   bool   `json:"all,omitempty" jsonschema:"also the rows that did not change, need repeats or cannot be compared"`
	paging
}

type checkArgs struct {
	Run     string   `json:"run" jsonschema:"path of a run"`
	Asserts []string `json:"asserts,omitempty" jsonschema:"expressions that must hold, such as 'ttft p99 < 450ms'"`
	SLO     string   `json:"slo,omitempty" jsonschema:"path of a YAML file of checks below a root"`
	paging
}

type catalogArgs struct {
	Name string `json:"name" jsonschema:"a quantity (ttft, vllm.error_ratio), a metric family or an engine"`
	paging
}

type explainArgs struct {
	Run   string `json:"run" jsonschema:"path of a run"`
	Other string `json:"other,omitempty" jsonschema:"a second run: where the difference is"`
	Why   string `json:"why,omitempty" jsonschema:"latency (default), ttft or throughput"`
	paging
}

type sweepArgs struct {
	Runs []string `json:"runs" jsonschema:"paths of runs; RUN@rate-* takes phases"`
	Load string   `json:"load,omitempty" jsonschema:"tag that holds the load, or arrivals or running"`
	SLO  []string `json:"slo,omitempty" jsonschema:"limits, such as 'ttft p99 <= 500ms'"`
	paging
}

// register adds the tools.
func (s *server) register(to *mcp.Server) {
	add(s, to, "runs", "List the recorded runs: path, id, tags, start, duration, engines, warnings.", s.listRuns)
	add(s, to, "show", "What a run measured: throughput, latency with bounds, saturation, errors.",
		func(a showArgs) (q question, err error) {
			q = question{tool: "show", read: readDocument, cursor: a.Cursor}
			return q, s.addRuns(&q, a.Window, a.Run)
		})
	add(s, to, "query", "Statistics as one table. Columns that are the same in all rows of a page stand in same.",
		s.query)
	add(s, to, "samples", "What was recorded, poll by poll, between two times, at most 200 rows a page.", s.samples)
	add(s, to, "compare", "What changed between two runs, and whether that is beyond chance.",
		func(a compareArgs) (q question, err error) {
			q = question{tool: "compare", read: readDocument, cursor: a.Cursor, flags: []string{"--all"}}
			if !a.All {
				q.flags, q.change = nil, changedRows
			}
			return q, s.addRuns(&q, "", a.Base, a.Other)
		})
	add(s, to, "check", "Hold a run against limits. A limit that is not kept is an answer, no error.", s.check)
	add(s, to, "catalog", "What a metric family or a quantity means: unit, formula, engines.",
		func(a catalogArgs) (question, error) {
			return question{tool: "catalog show", read: readDocument, cursor: a.Cursor, words: []string{a.Name}}, nil
		})
	add(s, to, "explain", "Why latency or throughput is what it is: where the time went, what ran out.",
		func(a explainArgs) (q question, err error) {
			q = question{tool: "explain", read: readDocument, cursor: a.Cursor, flags: flags("--why=", a.Why)}
			if a.Other != "" {
				return q, s.addRuns(&q, "", a.Run, a.Other)
			}
			return q, s.addRuns(&q, "", a.Run)
		})
	add(s, to, "sweep", "Load points side by side: capacity, knee, load within limits, what ran out first.",
		func(a sweepArgs) (q question, err error) {
			q = question{tool: "sweep", read: readDocument, cursor: a.Cursor,
				flags: append(flags("--load=", a.Load), flags("--slo=", a.SLO...)...)}
			return q, s.addRuns(&q, "", a.Runs...)
		})
}

// add adds a tool that makes a question of its arguments.
func add[A any](s *server, to *mcp.Server, name, text string, ask func(A) (question, error)) {
	closed := false
	mcp.AddTool(to, &mcp.Tool{Name: name, Description: text,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed, IdempotentHint: true}},
		func(ctx context.Context, _ *mcp.CallToolRequest, a A) (*mcp.CallToolResult, any, error) {
			q, err := ask(a)
			if err != nil {
				return nil, nil, err
			}
			return s.answer(ctx, q)
		})
}

// flags writes a flag for each value that is given.
func flags(name string, values ...string) (out []string) {
	for _, v := range values {
		if v != "" {
			out = append(out, name+v)
		}
	}
	return out
}

// addRuns adds runs to a question, with the part that is wanted of those that do not say it themselves.
func (s *server) addRuns(q *question, part string, args ...string) error {
	if len(args) == 0 {
		return errors.New("no run is given")
	}
	for _, text := range args {
		r, err := s.roots.run(text, part)
		if err != nil {
			return err
		}
		q.runs = append(q.runs, r)
	}
	return nil
}

func (s *server) query(a queryArgs) (q question, err error) {
	q = question{tool: "query", read: readTable, cursor: a.Cursor, flags: append(flags("--metric=", a.Metrics...),
		flags("--every=", a.Every)...)}
	if len(a.Metrics) == 0 {
		return q, errors.New("metrics: name quantities or families; show lists them")
	}
	q.flags = append(q.flags, flags("--stat=", a.Stats...)...)
	for _, label := range a.By {
		q.flags = append(q.flags, "--by="+label)
	}
	return q, s.addRuns(&q, a.Window, a.Runs...)
}

func (s *server) check(a checkArgs) (q question, err error) {
	q = question{tool: "check", read: readDocument, cursor: a.Cursor, flags: flags("--assert=", a.Asserts...)}
	if a.SLO != "" {
		file, err := s.roots.find(a.SLO)
		if err != nil {
			return q, err
		}
		q.files, q.flags = []string{file}, append(q.flags, "--slo="+file)
	}
	return q, s.addRuns(&q, "", a.Run)
}

func (s *server) samples(a samplesArgs) (q question, err error) {
	q = question{tool: "samples", cursor: a.Cursor, flags: []string{a.Metric, a.Target, strconv.FormatInt(a.From, 10),
		strconv.FormatInt(a.To, 10)}}
	if a.To <= a.From {
		return q, fmt.Errorf("to is not after from: nanoseconds since 1970 are wanted, as start_ns and end_ns of show")
	}
	q.read = func(ctx context.Context, s *server, q *question, from int) (*result, error) {
		return s.readSamples(ctx, q.runs[0].path, &a, from)
	}
	if err := s.addRuns(&q, "", a.Run); err != nil {
		return q, err
	}
	if !q.runs[0].recorded {
		return q, fmt.Errorf("%s is no recording", q.runs[0].path)
	}
	return q, nil
}

// changedRows leaves the rows of a comparison that changed, and counts the others.
func changedRows(o texttab.Object) texttab.Object {
	for i := range o {
		rows, ok := o[i].Value.([]any)
		if o[i].Name != "rows" || !ok {
			continue
		}
		var changed []any
		for _, r := range rows {
			switch field(r, "verdict") {
			case "same", "needs repeats", "incomparable":
			default:
				changed = append(changed, r)
			}
		}
		o[i].Value = changed
		return o.With("rows_not_shown", len(rows)-len(changed))
	}
	return o
}
