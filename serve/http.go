package serve

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/scrapestat/scrapestat/metric"
)

// statusCanceled is what Prometheus answers a client that has gone.
const statusCanceled = 499

// answer is what a handler has to say: data to write, and what is doubtful about it.
type answer struct {
	data     func(e *encoder)
	warnings []string
	infos    []string
}

// Handler returns the API of Prometheus under /api/v1, /federate, and a page at /. It checks neither hosts nor origins.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	s.Mount(mux)
	mux.HandleFunc("/{$}", only(s.page, http.MethodGet))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, "not_found", errors.New("no such page"))
	})
	return mux
}

// Mount adds the paths of the API, and /federate, to a mux that has more.
func (s *Server) Mount(mux *http.ServeMux) {
	const v1 = "/api/v1/"
	both := []string{http.MethodGet, http.MethodPost}
	api := func(path string, h func(r *http.Request) (answer, error), methods ...string) {
		mux.HandleFunc(v1+path, only(func(w http.ResponseWriter, r *http.Request) { serveJSON(w, r, h) }, methods...))
	}
	api("query", s.query, both...)
	api("query_range", s.queryRange, both...)
	api("series", s.series, both...)
	api("labels", s.labels, both...)
	api("label/{name}/values", s.values, http.MethodGet)
	api("metadata", s.metadata, http.MethodGet)
	api("query_exemplars", s.exemplars, both...)
	api("targets", s.targets, http.MethodGet)
	api("status/tsdb", s.tsdb, http.MethodGet)
	for path, body := range map[string]string{
		"status/buildinfo": `{"version":"3.15.0","revision":"","branch":"","buildUser":"","buildDate":"","goVersion":""}`,
		"status/flags":     `{}`, "rules": `{"groups":[]}`, "alerts": `{"alerts":[]}`,
		"alertmanagers": `{"activeAlertmanagers":[],"droppedAlertmanagers":[]}`,
		"status/runtimeinfo": `{"reloadConfigSuccess":true,"corruptionCount":0,"storageRetention":"","GOMAXPROCS":` +
			`1}`,
	} {
		api(path, func(*http.Request) (answer, error) {
			return answer{data: func(e *encoder) { e.raw(body) }}, nil
		}, http.MethodGet)
	}
	mux.HandleFunc(v1+"read", only(s.read, http.MethodPost))
	mux.HandleFunc(v1, func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, "not_found", errors.New("no such path: runs are read, not written or administered"))
	})
	mux.HandleFunc("/federate", only(s.federate, http.MethodGet))
	for path, text := range map[string]string{"/-/ready": "Ready.\n", "/-/healthy": "Healthy.\n"} {
		mux.HandleFunc(path, only(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) },
			http.MethodGet))
	}
}

// only answers other methods than these with 405.
func only(h http.HandlerFunc, methods ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(methods, r.Method) && (r.Method != http.MethodHead || methods[0] != http.MethodGet) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			fail(w, http.StatusMethodNotAllowed, "bad_data", fmt.Errorf("method %s: want %s", r.Method,
				strings.Join(methods, " or ")))
			return
		}
		h(w, r)
	}
}

// fail writes an error as the API has it.
func fail(w http.ResponseWriter, status int, kind string, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := &encoder{w: w}
	e.raw(`{"status":"error","errorType":`)
	e.text(kind)
	e.raw(`,"error":`)
	e.text(err.Error())
	e.raw("}")
	_ = e.flush() // the client may have gone
}

// refuse tells which error it is.
func refuse(w http.ResponseWriter, err error) {
	var wrong *UsageError
	var canceled promql.ErrQueryCanceled
	var timeout promql.ErrQueryTimeout
	var size *http.MaxBytesError
	switch {
	case errors.As(err, &size):
		fail(w, http.StatusBadRequest, "bad_data", errors.New("the request is larger than 1 MiB"))
	case errors.As(err, &wrong):
		fail(w, http.StatusBadRequest, "bad_data", err)
	case errors.Is(err, errBusy), errors.As(err, &timeout), errors.Is(err, context.DeadlineExceeded):
		fail(w, http.StatusServiceUnavailable, "timeout", err)
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		fail(w, statusCanceled, "canceled", err)
	default:
		fail(w, http.StatusUnprocessableEntity, "execution", err)
	}
}

func serveJSON(w http.ResponseWriter, r *http.Request, h func(r *http.Request) (answer, error)) {
	if err := r.ParseForm(); err != nil {
		refuse(w, &UsageError{err})
		return
	}
	a, err := h(r)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out := io.Writer(w)
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		out = z
	}
	e := &encoder{w: out}
	e.raw(`{"status":"success","data":`)
	a.data(e)
	for i, list := range [][]string{a.warnings, a.infos} {
		if len(list) > 0 {
			e.raw([]string{`,"warnings":`, `,"infos":`}[i])
			e.each(len(list), func(i int) { e.text(list[i]) })
		}
	}
	e.raw("}\n")
	_ = e.flush() // the client may have gone
}

// parseTime reads seconds since 1970 or RFC 3339; the default where there is none.
func parseTime(r *http.Request, name string, def int64) (int64, error) {
	text := r.Form.Get(name)
	if text == "" {
		return def, nil
	}
	if t, err := strconv.ParseFloat(text, 64); err == nil {
		if math.Abs(t) < maxSeconds {
			return int64(math.Round(t * 1000)), nil
		}
		return 0, usage("invalid parameter %q: %q is out of range", name, text)
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil && math.Abs(float64(t.Unix())) < maxSeconds {
		return t.UnixMilli(), nil
	}
	return 0, usage("invalid parameter %q: cannot parse %q to a valid timestamp", name, text)
}

// maxSeconds keeps times in what nanoseconds of 64 bits can tell.
const maxSeconds = 9_200_000_000

// parseDuration reads seconds or a duration of Prometheus; 0 where there is none.
func parseDuration(r *http.Request, name string) (time.Duration, error) {
	text := r.Form.Get(name)
	if text == "" {
		return 0, nil
	}
	if d, err := strconv.ParseFloat(text, 64); err == nil {
		if math.Abs(d) < maxSeconds {
			return time.Duration(d * 1e9), nil
		}
		return 0, usage("invalid parameter %q: %q is out of range", name, text)
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0, usage("invalid parameter %q: cannot parse %q to a valid duration", name, text)
	}
	return time.Duration(d), nil
}

func (s *Server) common(r *http.Request) (q Request, err error) {
	q.Expr = r.Form.Get("query")
	if q.Timeout, err = parseDuration(r, "timeout"); err == nil {
		q.Lookback, err = parseDuration(r, "lookback_delta")
	}
	return q, err
}

func (s *Server) query(r *http.Request) (answer, error) {
	q, err := s.common(r)
	if err != nil {
		return answer{}, err
	}
	if r.Form.Get("time") != "" {
		at, err := parseTime(r, "time", 0)
		if err != nil {
			return answer{}, err
		}
		q.AtMS = &at
	}
	return s.result(r, q)
}

func (s *Server) queryRange(r *http.Request) (answer, error) {
	q, err := s.common(r)
	if err != nil {
		return answer{}, err
	}
	q.Range = true
	for name, to := range map[string]*int64{"start": &q.StartMS, "end": &q.EndMS} {
		if r.Form.Get(name) == "" {
			return answer{}, usage("invalid parameter %q: it is missing", name)
		}
		if *to, err = parseTime(r, name, 0); err != nil {
			return answer{}, err
		}
	}
	if q.Step, err = parseDuration(r, "step"); err != nil {
		return answer{}, err
	}
	return s.result(r, q)
}

func (s *Server) result(r *http.Request, q Request) (answer, error) {
	limit, err := parseLimit(r)
	if err != nil {
		return answer{}, err
	}
	res, err := s.Query(r.Context(), q)
	if err != nil {
		return answer{}, err
	}
	if res.cut(limit) {
		res.Warnings = append(res.Warnings, "results truncated due to limit")
	}
	return answer{func(e *encoder) { e.data(res) }, res.Warnings, res.Infos}, nil
}

// cut leaves so many series, 0 being all, and reports whether there were more.
func (r *Result) cut(limit int) bool {
	switch v := r.value.(type) {
	case promql.Vector:
		if limit > 0 && len(v) > limit {
			r.value = v[:limit]
			return true
		}
	case promql.Matrix:
		if limit > 0 && len(v) > limit {
			r.value = v[:limit]
			return true
		}
	}
	return false
}

func parseLimit(r *http.Request) (int, error) {
	text := r.Form.Get("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, usage("invalid parameter %q: %q is no number of at least 0", "limit", text)
	}
	return n, nil
}

// maxMatchers is how many selectors a request may have, and each of them matchers.
const maxMatchers = 64

func (s *Server) selectors(texts []string) ([][]*labels.Matcher, error) {
	if len(texts) > maxMatchers {
		return nil, usage("%d selectors, at most %d are read", len(texts), maxMatchers)
	}
	var out [][]*labels.Matcher
	for _, text := range texts {
		if len(text) > maxExpr {
			return nil, usage("a selector has %d bytes, at most %d are read", len(text), maxExpr)
		}
		m, err := s.parser.ParseMetricSelector(text)
		if err != nil {
			return nil, &UsageError{err}
		}
		if len(m) > maxMatchers {
			return nil, usage("a selector has %d matchers, at most %d are read", len(m), maxMatchers)
		}
		out = append(out, m)
	}
	return out, nil
}

// matched calls do with the series that match[], start and end of a request choose.
func (s *Server) matched(r *http.Request, do func(all []*series)) error {
	m, err := s.selectors(r.Form["match[]"])
	if err != nil {
		return err
	}
	from, err := parseTime(r, "start", math.MinInt64)
	if err != nil {
		return err
	}
	to, err := parseTime(r, "end", math.MaxInt64)
	if err != nil {
		return err
	}
	return s.reading(r.Context(), nil, func() error {
		do(s.store.matchAny(m, from, to))
		return nil
	})
}

// maxSeries is how many series /series lists.
const maxSeries = 100_000

func (s *Server) series(r *http.Request) (answer, error) {
	if len(r.Form["match[]"]) == 0 {
		return answer{}, usage("no match[] parameter provided")
	}
	var list []labels.Labels
	err := s.matched(r, func(all []*series) {
		for _, x := range all {
			list = append(list, x.labels)
		}
	})
	if err != nil {
		return answer{}, err
	}
	list, a, err := limited(r, list, maxSeries)
	a.data = func(e *encoder) { e.each(len(list), func(i int) { e.labels(list[i]) }) }
	return a, err
}

// limited cuts a list where a request or a limit wants it.
func limited[T any](r *http.Request, list []T, most int) ([]T, answer, error) {
	limit, err := parseLimit(r)
	if limit == 0 || limit > most {
		limit = most
	}
	if len(list) > limit {
		return list[:limit], answer{warnings: []string{"results truncated due to limit"}}, err
	}
	return list, answer{}, err
}

func (s *Server) texts(r *http.Request, of func(all []*series) []string) (answer, error) {
	var list []string
	if err := s.matched(r, func(all []*series) { list = of(all) }); err != nil {
		return answer{}, err
	}
	list, a, err := limited(r, list, maxSeries)
	a.data = func(e *encoder) { e.each(len(list), func(i int) { e.text(list[i]) }) }
	return a, err
}

func (s *Server) labels(r *http.Request) (answer, error) { return s.texts(r, labelNames) }

func (s *Server) values(r *http.Request) (answer, error) {
	name := r.PathValue("name")
	if strings.HasPrefix(name, "U__") {
		name = model.UnescapeName(name, model.ValueEncodingEscaping)
	}
	if !model.UTF8Validation.IsValidLabelName(name) {
		return answer{}, usage("invalid label name: %q", name)
	}
	return s.texts(r, func(all []*series) []string { return labelValues(all, name) })
}

func (s *Server) metadata(r *http.Request) (answer, error) {
	type meta struct{ typ, help, unit string }
	known := map[string][]meta{}
	err := s.reading(r.Context(), nil, func() error {
		for _, run := range s.store.runs {
			for _, t := range run.targets {
				for i := range t.dict.Families {
					f := &t.dict.Families[i]
					name, m := strings.ToValidUTF8(f.ServerName(), "\uFFFD"), meta{f.Type.String(), f.Help, f.Unit}
					if f.Type == metric.Info {
						name = f.Name
					}
					if !slices.Contains(known[name], m) {
						known[name] = append(known[name], m)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return answer{}, err
	}
	names := map[string]bool{}
	for name := range known {
		names[name] = r.Form.Get("metric") == "" || r.Form.Get("metric") == name
	}
	list := slices.DeleteFunc(sorted(names), func(name string) bool { return !names[name] })
	list, a, err := limited(r, list, maxSeries)
	a.data = func(e *encoder) {
		e.raw("{")
		for i, name := range list {
			if i > 0 {
				e.raw(",")
			}
			e.text(name)
			e.raw(":")
			e.each(len(known[name]), func(k int) {
				m := known[name][k]
				e.raw(`{"type":`)
				e.text(m.typ)
				e.raw(`,"help":`)
				e.text(strings.ToValidUTF8(m.help, "\uFFFD"))
				e.raw(`,"unit":`)
				e.text(m.unit)
				e.raw("}")
			})
		}
		e.raw("}")
	}
	return a, err
}

func (s *Server) targets(r *http.Request) (answer, error) {
	type state struct {
		url    string
		labels labels.Labels
	}
	var list []state
	err := s.reading(r.Context(), nil, func() error {
		for _, run := range s.store.runs {
			for i, t := range run.targets {
				list = append(list, state{run.rec.Targets()[i].URL, promLabels(metric.NewLabels(t.labels...))})
			}
		}
		return nil
	})
	return answer{data: func(e *encoder) {
		e.raw(`{"activeTargets":`)
		e.each(len(list), func(i int) {
			e.raw(`{"discoveredLabels":{},"labels":`)
			e.labels(list[i].labels)
			e.raw(`,"scrapePool":`)
			e.text(list[i].labels.Get("job"))
			e.raw(`,"scrapeUrl":`)
			e.text(list[i].url)
			e.raw(`,"globalUrl":`)
			e.text(list[i].url)
			e.raw(`,"lastError":"","health":"unknown"}`)
		})
		e.raw(`,"droppedTargets":[]}`)
	}}, err
}

func (s *Server) tsdb(r *http.Request) (answer, error) {
	n := 0
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	err := s.reading(r.Context(), nil, func() error {
		for _, list := range s.store.byName {
			n += len(list)
		}
		for _, run := range s.store.runs {
			a, b := run.span()
			from, to = min(from, a), max(to, b)
		}
		return nil
	})
	return answer{data: func(e *encoder) {
		e.raw(fmt.Sprintf(`{"headStats":{"numSeries":%d,"numLabelPairs":0,"chunkCount":0,"minTime":%d,"maxTime":%d},`+
			`"seriesCountByMetricName":[],"labelValueCountByLabelName":[],"memoryInBytesByLabelName":[],`+
			`"seriesCountByLabelValuePair":[]}`, n, from, to))
	}}, err
}
