package export

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/scrapestat/scrapestat/metric"
)

// The versions of AIPerf's JSON schema that [JSON] writes.
const (
	Schema10 = "1.0"
	Schema11 = "1.1"
)

// The layouts of the Parquet file.
const (
	LayoutAIPerf = "aiperf"
	LayoutTidy   = "tidy"
)

// Options says how files are written. The zero value is AIPerf's current form.
type Options struct {
	AIPerfSchema  string // of the JSON: Schema11, also when "", or Schema10
	ParquetLayout string // LayoutAIPerf, also when "", or LayoutTidy
	// CSVRaw writes every cell of the CSV as it is. Else a text that a spreadsheet
	// would compute, one that begins with = @ TAB CR, or with + or - and is no number, gets a ' in front, and so does one
	// that begins with a ', so that taking one ' off the front of each such cell gives the text back.
	CSVRaw bool
	// Unhashed leaves the SHA-256 of files out, when nothing keeps it: for JSONL it costs as much as the rest.
	Unhashed bool
	// Location is the time zone of AIPerf's zoneless local times; nil is that of this machine.
	Location *time.Location
}

func (o Options) validate() error {
	switch o.AIPerfSchema {
	case "", Schema10, Schema11:
	default:
		return fmt.Errorf("AIPerf schema %q: known are %s and %s", o.AIPerfSchema, Schema10, Schema11)
	}
	switch o.ParquetLayout {
	case "", LayoutAIPerf, LayoutTidy:
	default:
		return fmt.Errorf("Parquet layout %q: known are %s and %s", o.ParquetLayout, LayoutAIPerf, LayoutTidy)
	}
	return nil
}

// Recording is what the formats that hold samples read of a recorded run;
// *rundb.Run is one. Snapshots yields the polls of a target in time order, each
// valid until the next; calls for different targets may overlap.
type Recording interface {
	Targets() []metric.Target
	Snapshots(ctx context.Context, target int) iter.Seq2[*metric.Snapshot, error]
}
