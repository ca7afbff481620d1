package promstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source/promstore"
)

// BenchmarkImportHour imports one hour of 8 targets with 1,000 series each,
// scraped every 15 s: 1.92 million samples, by both ways.
func BenchmarkImportHour(b *testing.B) {
	f := &fakeStore{t: b, readKind: "stream"}
	for target := range 8 {
		for i := range 1000 {
			s := fakeSeries{name: "vllm:tokens_total", labels: fmt.Sprintf(`engine="%d",instance="h:%d",job="vllm"`, i, target)}
			for k := range int64(240) {
				s.atMS, s.values = append(s.atMS, base+k*15_000+int64(target)), append(s.values, float64(k*int64(i)))
			}
			f.series = append(f.series, s)
		}
	}
	url := f.start()
	for _, via := range []string{promstore.ViaRemoteRead, promstore.ViaQuery} {
		b.Run(via, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o := options(url)
				o.Via, o.SliceSamples = via, 2_000_000
				st, err := promstore.Import(context.Background(), o, discard{})
				if err != nil || st.Stored != 1_920_000 {
					b.Fatalf("%+v, %v", st, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1_920_000, "ns/sample")
		})
	}
}

type discard struct{}

func (discard) Begin(int64) error                    { return nil }
func (discard) AddTarget(metric.Target) (int, error) { return 0, nil }
func (discard) Record(*metric.Snapshot) error        { return nil }
