// Package parquetwriter writes tables as Parquet files, column by column, in runs
// of equal values, as docs/decisions/0071-parquet-pages.md decides.
//
//	file := parquetwriter.New(w, columns, createdBy, metadata)
//	group := parquetwriter.NewGroup(columns)
//	file.Begin(), then for each row group fill group.Columns, group.Finish() and
//	file.Commit(group), then file.End()
package parquetwriter
