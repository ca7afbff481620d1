// Package interop holds what nobody here wrote against our files: pandas,
// pyarrow, polars and DuckDB read both layouts of the Parquet file and agree with
// the JSON on every series; AIPerf's published package loads the JSON and JSONL
// with its own models and the files with its plot loader, and its statistics, fed
// the same bodies through its own parser, agree with ours in clamp mode. AIPerf
// itself puts load on a simulated server, collects its metrics beside us, and says
// the same of them and of its requests (beside_test.go). The pages of docs/cookbook
// are what their scripts print (cookbook_test.go).
//
// It is a module of its own, so that "go test ./..." in the root needs no Python:
//
//	python3 -m venv v && v/bin/pip install -r internal/interop/requirements.txt
//	cd internal/interop && SCRAPESTAT_PYTHON=$PWD/../../v/bin/python go test -v ./...
//
// The tests record scenes (scene_test.go) without a network or a wall clock,
// export them, and hand the folder to a script in python/. A script prints what
// it compared, and each difference; where AIPerf's release is known to differ
// from its description the script says so and asserts the difference.
package interop
