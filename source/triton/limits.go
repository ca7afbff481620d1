package triton

import (
	"cmp"
	"fmt"

	"github.com/scrapestat/scrapestat/metric"
)

// Limits bounds what is accepted from a server. In each field 0 is the default.
type Limits struct {
	Body        int64 // bytes of an answer; 64 MiB
	Samples     int   // values of a poll; 500,000
	Series      int   // over a run; 1,000,000
	Models      int   // versions of models of a poll; 10,000
	Batches     int   // batch sizes of a model; 4096
	Responses   int   // response indices of a model; 16,384
	ValueLength int   // bytes of a name; 16 KiB
}

func (l Limits) withDefaults() Limits {
	l.Body = cmp.Or(l.Body, 64<<20)
	l.Samples = cmp.Or(l.Samples, 500_000)
	l.Series = cmp.Or(l.Series, 1_000_000)
	l.Models = cmp.Or(l.Models, 10_000)
	l.Batches = cmp.Or(l.Batches, 4096)
	l.Responses = cmp.Or(l.Responses, 16_384)
	l.ValueLength = cmp.Or(l.ValueLength, 16<<10)
	return l
}

func (l *Limits) check() error {
	for _, v := range []int64{l.Body, int64(l.Samples), int64(l.Series), int64(l.Models), int64(l.Batches),
		int64(l.Responses), int64(l.ValueLength)} {
		if v < 0 {
			return fmt.Errorf("limit %d is negative", v)
		}
	}
	return nil
}

// The reasons of values that are not stored. Those of package scrape have the same words.
const (
	reasonParse     = "parse"
	reasonDuplicate = "duplicate_series"
	reasonSeries    = "series_limit"
	reasonValue     = "value_limit"
	reasonModels    = "model_limit"
	reasonBatches   = "batch_limit"
	reasonResponses = "response_limit"
	reasonOverflow  = "overflow"
)

// losses counts what of a poll is not stored, by reason. The reasons are few.
type losses struct{ drops []metric.Drop }

func (l *losses) add(reason string, n int, first string) {
	l.drops = metric.AddDrop(l.drops, reason, n, func() string { return metric.Clean(first, 200) })
}
