// Package sql writes the statements that compute the statistics of a lake in DuckDB, ClickHouse and Spark.
package sql
