package sql

// templates has one template for each statistic, and what they share. Gains are differences of two look-ups: of the
// last sample up to the end of the window and the last one before it; where there is none of these, of the first in it,
// or of nothing for a series that is born.
const templates = `
{{define "windows"}}lake_runs AS (
  SELECT name, content, origin_ns, window_from, window_to, phases, targets
  FROM {{table "runs"}}{{if .Run}}
  WHERE {{matches "name" (quote .Run)}}{{end}}
), lake_targets AS (
  {{unnest "name, content, origin_ns" "targets" "lake_runs"}}
), {{if .Phase}}lake_phases AS (
  {{unnest "content" "phases" "lake_runs"}}
), {{end}}lake_windows AS (
  SELECT w.name AS run, w.content AS content, w.x.target AS target,{{if .Phase}}
    p.x.start_ns AS s, p.x.end_ns AS e, (p.x.end_ns - p.x.start_ns) / 1e9 AS seconds
  FROM lake_targets w JOIN lake_phases p ON w.content = p.content
  WHERE p.x.name = {{quote .Phase}}{{if .Instance}} AND p.x.instance = {{.Instance}}{{end}}{{else if .Span}}
    w.origin_ns + {{.FromNS}} AS s, {{if .ToNS}}w.origin_ns + {{.ToNS}}{{else}}w.x.window_to{{end}} AS e,
    ({{if .ToNS}}w.origin_ns + {{.ToNS}}{{else}}w.x.window_to{{end}} - w.origin_ns - {{.FromNS}}) / 1e9 AS seconds
  FROM lake_targets w{{else}}
    w.x.window_from AS s, w.x.window_to AS e, w.x.seconds AS seconds
  FROM lake_targets w{{end}}
){{end}}

{{define "series"}}{{template "windows" .Q}}, lake_series AS (
  SELECT w.run AS run, w.content AS content, w.s AS s, w.e AS e, w.seconds AS seconds, q.series_id AS series_id,
    q.metric_name AS metric_name, q.metric_type AS metric_type, q.endpoint_url AS endpoint_url,
    q.endpoint_name AS endpoint_name, q.labels AS labels, q.bounds AS bounds, q.origin AS origin, q.born AS born,
    q.status AS status
  FROM {{table "series"}} q JOIN lake_windows w ON q.content = w.content AND q.target = w.target
  WHERE q.metric_type IN ({{.Types}}){{if .Q.Metric}} AND q.metric_name = {{quote .Q.Metric}}{{end}}
){{end}}

{{define "only"}}{{if .Metric}} AND p.series_id IN (SELECT series_id FROM lake_series){{end}}{{end}}

{{define "totals"}}WITH {{template "series" .Of "'counter'"}}, lake_gains AS (
  SELECT p.content AS content, p.series_id AS series_id, count(*) AS samples,
    count(*) FILTER (WHERE p.t < r.s) AS earlier, max(p.t) AS last_t, max_by(p.gain, p.t) AS last_gain,
    max(p.t) FILTER (WHERE p.t < r.s) AS before_t, max_by(p.gain, p.t) FILTER (WHERE p.t < r.s) AS before_gain,
    min(p.t) FILTER (WHERE p.t >= r.s) AS first_t, min_by(p.gain, p.t) FILTER (WHERE p.t >= r.s) AS first_gain
  FROM {{table "samples"}} p JOIN lake_series r ON p.content = r.content AND p.series_id = r.series_id
  WHERE p.t <= r.e AND p.gain IS NOT NULL{{template "only" .}}
  GROUP BY p.content, p.series_id
), lake_totals AS (
  SELECT r.run AS run, r.content AS content, r.series_id AS series_id, r.metric_name AS metric_name,
    r.endpoint_url AS endpoint_url, r.endpoint_name AS endpoint_name, r.labels AS labels, r.status AS status,
    r.seconds AS seconds, g.samples - g.earlier AS samples, g.last_gain -
      CASE WHEN g.earlier > 0 THEN g.before_gain WHEN r.born THEN 0 ELSE g.first_gain END AS gained,
    (g.last_t - CASE WHEN g.earlier > 0 THEN g.before_t ELSE g.first_t END) / 1e9 AS polled
  FROM lake_series r JOIN lake_gains g ON r.content = g.content AND r.series_id = g.series_id
  WHERE g.samples > g.earlier AND (g.samples > 1 OR r.born)
){{if .Each}}
SELECT run, metric_name, endpoint_url, labels, series_id, samples, gained AS total, gained / seconds AS rate,
  gained / nullif(polled, 0) AS polled_rate, status
FROM lake_totals
ORDER BY run, series_id{{else}}
SELECT {{keys}}, count(*) AS series, sum(gained) AS total, sum(gained / seconds) AS rate,
  max(CASE status WHEN 'ok' THEN '0 ok' WHEN 'corrected' THEN '1 corrected' WHEN 'born' THEN '2 born'
    WHEN 'ambiguous' THEN '3 ambiguous' ELSE '4 lower_bound' END) AS worst
FROM lake_totals
GROUP BY {{names}}
ORDER BY {{names}}{{end}}{{end}}

{{define "deltas"}}WITH {{template "series" .Of "'histogram', 'summary'"}}, lake_gains AS (
  SELECT p.content AS content, p.series_id AS series_id, count(*) AS samples,
    count(*) FILTER (WHERE p.t < r.s) AS earlier, max(p.t) AS last_t,
    max(p.t) FILTER (WHERE p.t < r.s) AS before_t, min(p.t) FILTER (WHERE p.t >= r.s) AS first_t,{{range .Lists}}
    max_by(p.{{.}}, p.t) AS last_{{.}}, max_by(p.{{.}}, p.t) FILTER (WHERE p.t < r.s) AS before_{{.}},
    min_by(p.{{.}}, p.t) FILTER (WHERE p.t >= r.s) AS first_{{.}}{{if ne . "buckets_f"}},{{end}}{{end}}
  FROM {{table "samples"}} p JOIN lake_series r ON p.content = r.content AND p.series_id = r.series_id
  WHERE p.t <= r.e AND p.count IS NOT NULL{{template "only" .}}
  GROUP BY p.content, p.series_id
), lake_ends AS (
  SELECT r.run AS run, r.content AS content, r.series_id AS series_id, r.metric_name AS metric_name,
    r.endpoint_url AS endpoint_url, r.endpoint_name AS endpoint_name, r.labels AS labels, r.bounds AS bounds,
    r.status AS status, r.seconds AS seconds, g.samples - g.earlier AS samples,
    g.earlier = 0 AND r.born AS whole,
    (g.last_t - CASE WHEN g.earlier > 0 THEN g.before_t ELSE g.first_t END) / 1e9 AS polled,
    g.last_count AS last_count, g.last_sum AS last_sum, {{join "g.last_buckets_f" "g.last_buckets"}} AS last_b,
    CASE WHEN g.earlier > 0 THEN g.before_count ELSE g.first_count END AS ref_count,
    CASE WHEN g.earlier > 0 THEN g.before_sum ELSE g.first_sum END AS ref_sum,
    CASE WHEN g.earlier > 0 THEN {{join "g.before_buckets_f" "g.before_buckets"}}
      ELSE {{join "g.first_buckets_f" "g.first_buckets"}} END AS ref_b
  FROM lake_series r JOIN lake_gains g ON r.content = g.content AND r.series_id = g.series_id
  WHERE g.samples > g.earlier AND (g.samples > 1 OR r.born)
), lake_deltas AS (
  SELECT run, content, series_id, metric_name, endpoint_url, endpoint_name, labels, bounds, status, seconds, samples,
    polled, last_count - CASE WHEN whole THEN 0 ELSE ref_count END AS n,
    last_sum - CASE WHEN whole THEN 0 ELSE ref_sum END AS total_sum,
    {{minus "last_b" (printf "CASE WHEN whole THEN %s ELSE ref_b END" (zero "last_b"))}} AS b
  FROM lake_ends
){{end}}

{{define "histograms"}}{{template "deltas" .}}
SELECT run, metric_name, endpoint_url, labels, series_id, samples, n AS observations, total_sum,
  total_sum / nullif(n, 0) AS average, n / nullif(polled, 0) AS polled_rate, n / seconds AS rate, bounds,
  b AS bucket_counts, status
FROM lake_deltas
ORDER BY run, series_id{{end}}

{{define "quantiles"}}{{template "deltas" .}}, lake_numbered AS (
  SELECT {{keys}}, bounds, b, n, status FROM lake_deltas
), lake_sums AS (
  SELECT {{names}}, count(*) AS series, count(DISTINCT bounds) AS layouts, sum(n) AS n
  FROM lake_numbered
  GROUP BY {{names}}
), lake_cells AS (
  {{explode (printf "%s" names) "lake_numbered"}}
), lake_buckets AS (
  SELECT {{names}}, le, sum(d) AS sum_d
  FROM lake_cells
  WHERE le < 1.7e308
  GROUP BY {{names}}, le
), lake_cumulated AS (
  SELECT {{names}}, le, max(sum_d) OVER (PARTITION BY {{names}} ORDER BY le ROWS BETWEEN UNBOUNDED PRECEDING AND
    CURRENT ROW) AS c
  FROM lake_buckets
), lake_steps AS (
  SELECT {{names}}, le, c, {{lag "c" names "le"}} AS below, {{lag "le" names "le"}} AS lower_le,
    row_number() OVER (PARTITION BY {{names}} ORDER BY le) AS place
  FROM lake_cumulated
), lake_percentiles AS ({{range $i, $p := .Percentiles}}{{if $i}} UNION ALL{{end}}
  SELECT {{number $p}} AS percentile_p, {{share $p}} AS share_q{{end}}
), lake_ranked AS (
  SELECT {{of "t"}}, t.le AS le, t.c AS c, t.below AS below, t.lower_le AS lower_le, t.place AS place,
    z.series AS series, z.layouts AS layouts, z.n AS n, q.percentile_p AS percentile_p, q.share_q * floor(z.n) AS wanted
  FROM lake_steps t JOIN lake_sums z ON {{on "t" "z"}} CROSS JOIN lake_percentiles q
), lake_values AS (
  SELECT *, c >= wanted AND c > below AS hit, CASE WHEN place = 1 AND le <= 0 THEN le ELSE
    lower_le * (1 - (wanted - below) / nullif(c - below, 0)) + le * ((wanted - below) / nullif(c - below, 0)) END AS v
  FROM lake_ranked
)
SELECT {{names}}, percentile_p AS percentile, max(n) AS observations, max(series) AS series,
  CASE WHEN max(layouts) > 1 OR max(n) < 1 THEN NULL WHEN count(*) FILTER (WHERE hit) = 0 THEN max(le)
    ELSE min_by(v, le) FILTER (WHERE hit) END AS value,
  CASE WHEN max(layouts) > 1 THEN 'bounds_differ' WHEN max(n) < 1 THEN 'no_data' ELSE 'ok' END AS status
FROM lake_values
GROUP BY {{names}}, percentile_p
ORDER BY {{names}}, percentile_p{{end}}

{{define "gauges"}}WITH {{template "series" .Of "'gauge', 'unknown'"}}
SELECT max(r.run) AS run, max(r.metric_name) AS metric_name, max(r.endpoint_url) AS endpoint_url,
  any_value(r.labels) AS labels, p.series_id AS series_id, count(*) AS samples, avg(p.value) AS average,
  min(p.value) AS least, max(p.value) AS most,
  coalesce(stddev_samp(p.value - r.origin), 0) AS deviation{{range .Percentiles}},
  {{percentile "p.value" (share .)}} AS {{column .}}{{end}}
FROM {{table "samples"}} p JOIN lake_series r ON p.content = r.content AND p.series_id = r.series_id
WHERE p.t >= r.s AND p.t <= r.e AND p.value BETWEEN {{least}} AND {{most}}{{template "only" .}}
GROUP BY p.content, p.series_id
ORDER BY run, series_id{{end}}

{{define "slices"}}WITH {{template "series" .Of "'counter', 'histogram', 'summary', 'gauge', 'unknown'"}}, lake_cut AS (
  SELECT p.content AS content, p.series_id AS series_id, p.t AS t, p.gain AS gain, p.count AS n, p.sum AS total_sum,
    CASE WHEN r.metric_type IN ('gauge', 'unknown') THEN p.value END AS value,
    CASE WHEN p.t < r.s THEN -1
      WHEN r.metric_type IN ('gauge', 'unknown') AND p.t = r.e AND p.t > r.s
      THEN {{div "p.t - r.s - 1" (printf "%d" .SliceNS)}}
      WHEN r.metric_type IN ('gauge', 'unknown') THEN {{div "p.t - r.s" (printf "%d" .SliceNS)}}
      WHEN p.t = r.s THEN 0 ELSE {{div "p.t - r.s - 1" (printf "%d" .SliceNS)}} END AS k
  FROM {{table "samples"}} p JOIN lake_series r ON p.content = r.content AND p.series_id = r.series_id
  WHERE p.t <= r.e AND (p.gain IS NOT NULL OR p.count IS NOT NULL OR
    p.value BETWEEN {{least}} AND {{most}} AND r.metric_type IN ('gauge', 'unknown'))
    {{- template "only" .}}
), lake_slices AS (
  SELECT content, series_id, k, count(*) AS samples, max_by(gain, t) AS last_gain, min_by(gain, t) AS first_gain,
    max_by(n, t) AS last_n, min_by(n, t) AS first_n, max_by(total_sum, t) AS last_sum,
    min_by(total_sum, t) AS first_sum, avg(value) AS average, min(value) AS least, max(value) AS most
  FROM lake_cut
  GROUP BY content, series_id, k
), lake_followed AS (
  SELECT *, {{lag "last_gain" "content, series_id" "k"}} AS prev_gain,
    {{lag "last_n" "content, series_id" "k"}} AS prev_n,
    {{lag "last_sum" "content, series_id" "k"}} AS prev_sum,
    row_number() OVER (PARTITION BY content, series_id ORDER BY k) AS place,
    sum(samples) OVER (PARTITION BY content, series_id) AS all_samples
  FROM lake_slices
)
SELECT r.run AS run, r.metric_name AS metric_name, r.endpoint_url AS endpoint_url, f.series_id AS series_id,
  f.k AS slice, r.s + f.k * {{.SliceNS}} AS start_ns,
  least(r.s + (f.k + 1) * {{.SliceNS}}, r.e) AS end_ns, f.samples AS samples,
  f.last_gain - CASE WHEN f.place > 1 THEN f.prev_gain WHEN r.born THEN 0 ELSE f.first_gain END AS total,
  f.last_n - CASE WHEN f.place > 1 THEN f.prev_n WHEN r.born THEN 0 ELSE f.first_n END AS observations,
  f.last_sum - CASE WHEN f.place > 1 THEN f.prev_sum WHEN r.born THEN 0 ELSE f.first_sum END AS total_sum,
  f.average AS average, f.least AS least, f.most AS most, r.status AS status
FROM lake_followed f JOIN lake_series r ON f.content = r.content AND f.series_id = r.series_id
WHERE f.k >= 0 AND (f.all_samples > 1 OR r.born)
ORDER BY run, series_id, slice{{end}}

{{define "runs"}}SELECT name, content, run_ids, version, tags, host, closed, origin_ns, window_from, window_to,
  window_rule, phases, targets, warnings, rows
FROM {{table "runs"}}{{if .Run}}
WHERE {{matches "name" (quote .Run)}}{{end}}
ORDER BY name{{end}}
`
