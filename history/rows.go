package history

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"

	"github.com/scrapestat/scrapestat/internal/sqlitefile"
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
// were added.
func (f *File) Rows(ctx context.Context) iter.Seq2[Row, error] {
	const query = `SELECT r.fingerprint, s.quantity, r.at_ns, r.run_id, s.phase, s.engine, s.target, s.kind, s.unit,
			s.better, v.value, v.se_log, v.df, v.low, v.high, v.beyond, v.note, r.path, r."commit", r.branch,
			r.version, r.window_s, r.ok, r.note, r.analysis, r.tags, r.id, c.json
		FROM value v JOIN run r ON r.id = v.run JOIN series s ON s.id = v.series
			JOIN config c ON c.fingerprint = r.fingerprint
		ORDER BY r.fingerprint, s.quantity, r.at_ns, r.run_id, s.phase, s.engine, s.target, s.kind, s.unit, s.better`
	return func(yield func(Row, error) bool) {
		stopped := errors.New("stopped")
		settings, same := map[int64]string{}, map[string]string{} // equal ones share their text
		err := sqlitefile.Each(ctx, f.db, func(rows *sql.Rows) error {
			var run int64
			var text sql.RawBytes
			err := rows.Scan(&run, &text)
			if _, ok := same[string(text)]; !ok {
				same[string(text)] = string(text)
			}
			settings[run] = same[string(text)]
			return err
		}, `SELECT x.run, json_group_object(n.text, t.text ORDER BY n.text) FROM setting x JOIN text n ON n.id = x.name
			JOIN text t ON t.id = x.value WHERE x.run IN (SELECT id FROM run LIMIT ?) GROUP BY x.run`, maxRuns)
		if err != nil {
			yield(Row{}, err)
			return
		}
		err = sqlitefile.Each(ctx, f.db, func(rows *sql.Rows) error {
			var x Row
			var run int64
			if err := rows.Scan(&x.Fingerprint, &x.Quantity, &x.AtNS, &x.RunID, &x.Phase, &x.Engine, &x.Target, &x.Kind,
				&x.Unit, &x.Better, &x.Value, &x.ErrLog, &x.DF, &x.Low, &x.High, &x.Beyond, &x.ValueNote, &x.Path, &x.Commit,
				&x.Branch, &x.Version, &x.Window, &x.OK, &x.Note, &x.Analysis, &x.Tags, &run, &x.Config); err != nil {
				return err
			}
			if x.Settings = cmp.Or(settings[run], "{}"); !yield(x, nil) {
				return stopped
			}
			return nil
		}, query)
		if err != nil && !errors.Is(err, stopped) {
			yield(Row{}, err)
		}
	}
}
