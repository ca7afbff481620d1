package scrape_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// TestReplicasShareText shows that targets whose bodies differ in values only keep
// the text between the values once, and others each their own.
func TestReplicasShareText(t *testing.T) {
	const targets = 40
	two := bodies(2)
	heap := func(name func(target int) string) uint64 {
		decoders := make([]*scrape.Decoder, targets)
		before := heapInUse()
		for i := range decoders {
			decoders[i] = newDecoder(t, scrape.Options{})
			for _, body := range two {
				var s metric.Snapshot
				body = bytes.ReplaceAll(body, []byte("model_name"), []byte(name(i)))
				if decoders[i].Decode(&s, scrape.Body{Bytes: body, ContentType: classic}); s.Outcome != metric.OK {
					t.Fatal(s.Outcome, s.Err)
				}
			}
		}
		after := heapInUse()
		runtime.KeepAlive(decoders)
		return (after - before) / targets
	}
	replicas := heap(func(int) string { return "model_name" })
	strangers := heap(func(target int) string { return fmt.Sprintf("model_n_%02d", target) })
	t.Logf("bytes for each target, scratch included: replicas %d, strangers %d, body %d", replicas, strangers, len(two[0]))
	if saved := int(strangers) - int(replicas); saved < len(two[0])/2 {
		t.Errorf("a replica takes %d bytes, a target of its own kind %d: only %d of a body of %d saved", replicas,
			strangers, saved, len(two[0]))
	}
}

// heapInUse is what lives after everything else was collected.
func heapInUse() uint64 {
	for range 3 { // shared texts go one collection after the last who had them
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
