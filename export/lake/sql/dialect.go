package sql

import (
	"fmt"
	"strings"
)

// dialect is where the engines differ. All three have max_by, FILTER and window functions.
type dialect struct {
	name  string
	quote func(text string) string
	// table is what a statement reads: the files of a table, with the column content.
	table func(lake, name string) string
	// unnest is a row for each struct, called x, of the list in a column.
	unnest func(columns, list, from string) string
	// explode is a row for each place of two lists, which become le and d.
	explode func(columns, from string) string
	// minus is the difference of two lists, zero a list of as many zeros, join the one of two that has values.
	minus, join func(a, b string) string
	zero        func(a string) string
	matches     func(text, pattern string) string
	div         func(a, b string) string
	lag         func(x, partition, order string) string
	percentile  func(x, p string) string
}

// Dialects returns the names of the dialects.
func Dialects() []string { return []string{"duckdb", "clickhouse", "spark"} }

func dialectOf(name string) *dialect {
	d := &dialect{name: name, lag: func(x, partition, order string) string {
		return fmt.Sprintf("coalesce(lag(%s) OVER (PARTITION BY %s ORDER BY %s), 0)", x, partition, order)
	}}
	switch name {
	case "duckdb":
		d.duckdb()
	case "clickhouse":
		d.clickhouse()
	case "spark":
		d.spark()
	default:
		return nil
	}
	return d
}

func doubled(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// escaped is for engines that know backslashes in texts.
func escaped(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(s) + "'"
}

func (d *dialect) duckdb() {
	d.quote = func(s string) string {
		return strings.ReplaceAll(doubled(s), "\x00", "' || chr(0) || '")
	}
	d.table = func(lake, name string) string {
		if name == "runs" {
			return "read_parquet(" + d.quote(lake+"/runs/*/run.parquet") + ", hive_partitioning=false, union_by_name=true)"
		}
		return "read_parquet(" + d.quote(lake+"/"+name+"/**/*.parquet") +
			", hive_partitioning=true, hive_types={'run': VARCHAR, 'content': VARCHAR}, union_by_name=true)"
	}
	d.unnest = func(columns, list, from string) string {
		return fmt.Sprintf("SELECT %s, unnest(%s) AS x FROM %s", columns, list, from)
	}
	d.explode = func(columns, from string) string {
		return fmt.Sprintf("SELECT %s, unnest(bounds) AS le, unnest(b) AS d FROM %s", columns, from)
	}
	d.minus = func(a, b string) string {
		return fmt.Sprintf("[p[1] - p[2] for p in list_zip(%s, %s)]", a, b)
	}
	d.zero = func(a string) string { return fmt.Sprintf("[0.0::DOUBLE for p in %s]", a) }
	d.join = func(a, b string) string {
		return fmt.Sprintf("CASE WHEN len(%s) > 0 THEN %[1]s ELSE %s::DOUBLE[] END", a, b)
	}
	d.matches = func(text, pattern string) string { return fmt.Sprintf("regexp_full_match(%s, %s)", text, pattern) }
	d.div = func(a, b string) string { return fmt.Sprintf("((%s) // %s)", a, b) }
	d.percentile = func(x, p string) string { return fmt.Sprintf("quantile_cont(%s, %s)", x, p) }
}

func (d *dialect) clickhouse() {
	d.quote = escaped
	d.table = func(lake, name string) string {
		switch name {
		case "runs":
			return "file(" + d.quote(lake+"/runs/*/run.parquet") + ", Parquet)"
		case "series":
			name += "/*/*"
		case "samples":
			name += "/*/*/*"
		}
		return "(SELECT *, extract(_path, '/content=([^/]+)/') AS content FROM file(" +
			d.quote(lake+"/"+name+"/*.parquet") + ", Parquet))"
	}
	d.unnest = func(columns, list, from string) string {
		return fmt.Sprintf("SELECT %s, x FROM %s ARRAY JOIN %s AS x", columns, from, list)
	}
	d.explode = func(columns, from string) string {
		return fmt.Sprintf("SELECT %s, le, d FROM %s ARRAY JOIN bounds AS le, b AS d", columns, from)
	}
	d.minus = func(a, b string) string { return fmt.Sprintf("arrayMap((p, q) -> p - q, %s, %s)", a, b) }
	d.zero = func(a string) string { return fmt.Sprintf("arrayMap(p -> toFloat64(0), %s)", a) }
	d.join = func(a, b string) string {
		return fmt.Sprintf("if(length(%s) > 0, %[1]s, arrayMap(p -> toFloat64(p), %s))", a, b)
	}
	d.matches = func(text, pattern string) string {
		return fmt.Sprintf("match(%s, concat('^(?:', %s, ')$'))", text, pattern)
	}
	d.div = func(a, b string) string { return fmt.Sprintf("intDiv(%s, %s)", a, b) }
	d.lag = func(x, partition, order string) string { // 0 where there is none
		return fmt.Sprintf("lagInFrame(%s) OVER (PARTITION BY %s ORDER BY %s ROWS BETWEEN UNBOUNDED PRECEDING AND "+
			"CURRENT ROW)", x, partition, order)
	}
	d.percentile = func(x, p string) string { return fmt.Sprintf("quantileExactInclusive(%s)(%s)", p, x) }
}

func (d *dialect) spark() {
	d.quote = escaped
	d.table = func(lake, name string) string {
		return "parquet.`" + strings.ReplaceAll(lake+"/"+name, "`", "``") + "`"
	}
	d.unnest = func(columns, list, from string) string {
		return fmt.Sprintf("SELECT %s, x FROM %s LATERAL VIEW explode(%s) v AS x", columns, from, list)
	}
	d.explode = func(columns, from string) string {
		return fmt.Sprintf("SELECT %s, x.bounds AS le, x.b AS d FROM %s LATERAL VIEW explode(arrays_zip(bounds, b)) v AS x",
			columns, from)
	}
	d.minus = func(a, b string) string { return fmt.Sprintf("zip_with(%s, %s, (p, q) -> p - q)", a, b) }
	d.zero = func(a string) string { return fmt.Sprintf("transform(%s, p -> 0D)", a) }
	d.join = func(a, b string) string {
		return fmt.Sprintf("CASE WHEN size(%s) > 0 THEN %[1]s ELSE cast(%s AS array<double>) END", a, b)
	}
	d.matches = func(text, pattern string) string {
		return fmt.Sprintf("%s RLIKE concat('^(?:', %s, ')$')", text, pattern)
	}
	d.div = func(a, b string) string { return fmt.Sprintf("((%s) div %s)", a, b) }
	d.percentile = func(x, p string) string { return fmt.Sprintf("percentile(%s, %s)", x, p) }
}
