// Package parquetwriter writes the series of recordings as tables: Parquet files made column by column, in runs of
// equal values, as docs/decisions/0071-parquet-pages.md decides. A [Layout] says how series become rows.
package parquetwriter
