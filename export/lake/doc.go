// Package lake keeps what series gained, of many runs, in Parquet files that DuckDB, ClickHouse and Spark compute on:
//
//	LAKE/_scrapestat.json                                        the format, written once
//	LAKE/samples/run=RUN/content=C/day=2026-01-01/part-00000.parquet
//	LAKE/series/run=RUN/content=C/part-00000.parquet
//	LAKE/runs/run=RUN/run.parquet                                one row: [Run]
//
// C tells what a recording held when it was added. The file of table runs is written last and names its content:
// whoever joins with it reads whole runs only. Package sql writes such statements.
package lake
