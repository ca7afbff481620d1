package promstore_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"

	"github.com/scrapestat/scrapestat/internal/sourcetest"
	"github.com/scrapestat/scrapestat/source/promstore"
)

// TestHardening has a finding by the number that package faults lists: an answer
// without end, or one that grows in memory, is refused while it is read.
func TestHardening(t *testing.T) {
	t.Run("K20", func(t *testing.T) {
		head := `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a"`
		const json, block = "application/json", "application/x-protobuf"
		empty := snappy.Encode(nil, message(message(make([]byte, 16<<20)))) // is 8 million samples
		declared := binary.AppendUvarint(nil, 200<<20)
		for name, c := range map[string]struct{ via, kind, head, endless, want string }{
			"samples": {promstore.ViaQuery, json, head + `},"values":[[0,"1"]`, `,[1,"1"]`, "narrow it with --match"},
			"value":   {promstore.ViaQuery, json, head + `},"values":["`, "xxxxxxxx", "a value of the answer has more than"},
			"early": {promstore.ViaQuery, json, head[:len(head)-len(`"metric":{"__name__":"a"`)] + `"values":[1`, `,[1,"1"]`,
				"a value of the answer has more than"},
			"labels":   {promstore.ViaQuery, json, head, `,"b":"c"`, "more than 10000 labels"},
			"block":    {promstore.ViaRemoteRead, block, string(empty), "", ""},
			"declared": {promstore.ViaRemoteRead, block, string(declared), "xxxxxxxx", "narrow it with --match"},
			"longer":   {promstore.ViaRemoteRead, block, "\x08", "xxxxxxxx", "declares 8"},
		} {
			t.Run(name, func(t *testing.T) {
				var peak uint64
				var mu sync.Mutex // of peak: a handler may still run when the next begins
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.HasSuffix(r.URL.Path, "metadata") {
						return
					}
					w.Header().Set("Content-Type", c.kind)
					chunk := strings.Repeat(c.endless, 1<<17)
					_, err := w.Write([]byte(c.head))
					for n := 0; err == nil && c.endless != "" && n < 600<<20; n += len(chunk) {
						_, err = w.Write([]byte(chunk))
						var m runtime.MemStats
						runtime.ReadMemStats(&m)
						mu.Lock()
						peak = max(peak, m.HeapAlloc)
						mu.Unlock()
					}
				}))
				o := options(server.URL)
				o.Via, o.EndNS, o.Timeout = c.via, o.StartNS+int64(time.Second), 10*time.Minute
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				_, err := promstore.Import(t.Context(), o, sourcetest.New(t, sourcetest.Limits{}))
				runtime.ReadMemStats(&after)
				server.Close()
				if text := fmt.Sprint(err); !strings.Contains(text, c.want) || (err == nil) != (c.want == "") {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if peak = max(peak, before.HeapAlloc) - before.HeapAlloc; peak > 400<<20 {
					t.Errorf("%d MB of memory at one time", peak>>20)
				}
				if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 200 && name == "block" {
					t.Errorf("%d MB were allocated", n)
				}
			})
		}
	})
}

// message is a protobuf message whose field 1 is a series of empty samples, or that.
func message(inner []byte) []byte {
	num := byte(1)
	if len(inner) > 0 && inner[0] == 0 { // not filled yet
		for i := 0; i < len(inner); i += 2 {
			inner[i] = 2<<3 | 2
		}
	}
	return append(binary.AppendUvarint([]byte{num<<3 | 2}, uint64(len(inner))), inner...)
}
