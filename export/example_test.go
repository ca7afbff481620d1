package export_test

import (
	"context"
	"fmt"
	"os"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/rundb"
	"github.com/scrapestat/scrapestat/summary"
)

// A recorded run is analysed and written as two files.
func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	w, err := rundb.Create(dir, rundb.Meta{ID: rundb.NewID(), OriginNS: 1e18}, rundb.WriterOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := w.Close(context.Background()); err != nil { // what package collect would have recorded
		fmt.Println(err)
		return
	}
	run, err := rundb.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer run.Close()

	ctx := context.Background()
	result, err := summary.Build(ctx, []summary.Recording{run}, summary.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := export.Write(ctx, dir, []string{"json", "csv"}, result, []export.Recording{run}, export.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range files {
		fmt.Println(f.Format, f.Size > 0)
	}
	// Output:
	// json true
	// csv true
}
