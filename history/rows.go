package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"iter"
)

// Row is a value with all that is known of its run; a pointer is nil where there is none. Settings and tags are JSON.
type Row struct {
	Fingerprint string   `parquet:"fingerprint,dict"`
	Quantity    string   `parquet:"quantity,dict"`
	AtNS        int64    `parquet:"at_ns,timestamp(nanosecond)"`
	RunID       string   `parquet:"run_id,dict"`
	Phase       string   `parquet:"phase,dict"`
	Engine      string   `parquet:"engine,dict"`
	Target      string   `parquet:"target,dict"`
	Kind        string   `parquet:"kind,dict"`
	Unit        string   `parquet:"unit,dict"`
	Better      string   `parquet:"better,dict"`
	Value       *float64 `parquet:"value,optional"`
	ErrLog      *float64 `parquet:"se_log,optional"`
	DF          *float64 `parquet:"df,optional"`
	Low         *float64 `parquet:"low,optional"`
	High        *float64 `parquet:"high,optional"`
	Beyond      *float64 `parquet:"beyond,optional"`
	ValueNote   *string  `parquet:"value_note,optional,dict"`
	Path        string   `parquet:"path,dict"`
	Commit      string   `parquet:"commit,dict"`
	Branch      string   `parquet:"branch,dict"`
	Version     string   `parquet:"version,dict"`
	Window      float64  `parquet:"window_s"`
	OK          int64    `parquet:"ok"`
	Note        string   `parquet:"note,dict"`
	Analysis    int64    `parquet:"analysis"`
	Tags        string   `parquet:"tags,dict"`
	Settings    string   `parquet:"settings,dict"`
	Config      string   `parquet:"config,dict"`
}

// Rows are all values, by configuration, quantity and time: the same runs give the same rows, in whatever order they
// were added. Settings of the runs are held in memory.
func (f *File) Rows(ctx context.Context) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		settings, err := f.allSettings(ctx)
		if err != nil {
			yield(Row{}, err)
			return
		}
		rows, err := f.db.QueryContext(ctx, `SELECT r.id, r.fingerprint, s.quantity, r.at_ns, r.run_id, s.phase, s.engine,
			s.target, s.kind, s.unit, s.better, v.value, v.se_log, v.df, v.low, v.high, v.beyond, v.note, r.path, r."commit",
			r.branch, r.version, r.window_s, r.ok, r.note, r.analysis, r.tags, c.json
			FROM value v JOIN run r ON r.id = v.run JOIN series s ON s.id = v.series
			JOIN config c ON c.fingerprint = r.fingerprint
			ORDER BY r.fingerprint, s.quantity, r.at_ns, r.run_id, s.phase, s.engine, s.target, s.kind, s.unit, s.better`)
		if err != nil {
			yield(Row{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var x Row
			var id int64
			if err := rows.Scan(&id, &x.Fingerprint, &x.Quantity, &x.AtNS, &x.RunID, &x.Phase, &x.Engine, &x.Target, &x.Kind,
				&x.Unit, &x.Better, &x.Value, &x.ErrLog, &x.DF, &x.Low, &x.High, &x.Beyond, &x.ValueNote, &x.Path, &x.Commit,
				&x.Branch, &x.Version, &x.Window, &x.OK, &x.Note, &x.Analysis, &x.Tags, &x.Config); err != nil {
				yield(Row{}, err)
				return
			}
			if x.Settings = settings[id]; !yield(x, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Row{}, err)
		}
	}
}

// allSettings are the settings of all runs as JSON; equal ones share their text.
func (f *File) allSettings(ctx context.Context) (map[int64]string, error) {
	rows, err := f.db.QueryContext(ctx, `SELECT r.id, n.text, v.text FROM (SELECT id FROM run LIMIT ?) r
		LEFT JOIN setting s ON s.run = r.id LEFT JOIN text n ON n.id = s.name LEFT JOIN text v ON v.id = s.value
		ORDER BY r.id`, maxRuns)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out, same := map[int64]string{}, map[string]string{}
	facts, run, begun := map[string]string{}, int64(0), false
	keep := func() error {
		text, err := json.Marshal(facts)
		if err != nil {
			return err
		}
		if same[string(text)] == "" {
			same[string(text)] = string(text)
		}
		out[run] = same[string(text)]
		clear(facts)
		return nil
	}
	for rows.Next() {
		var id int64
		var name, value sql.NullString
		if err := rows.Scan(&id, &name, &value); err != nil {
			return nil, err
		}
		if begun && id != run {
			if err := keep(); err != nil {
				return nil, err
			}
		}
		if run, begun = id, true; name.Valid && value.Valid {
			facts[name.String] = value.String
		}
	}
	if err := rows.Err(); err != nil || !begun {
		return out, err
	}
	return out, keep()
}
