package proxy

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"github.com/scrapestat/scrapestat/internal/fuzzbound"
)

// FuzzAskForUsage holds the change of a body against what decoding and encoding all of
// it gives.
func FuzzAskForUsage(f *testing.F) {
	for _, s := range []string{`{"stream":true}`, ` {"a":[{"stream":1},"\\\""],"stream" : true , "stream_options":null}`,
		`{"stream":true,"stream_options":{"x":1,"include_usage":false}}`, `{"stream":true,"stream_options":[]}`,
		`{"stream":true,"stream":false}`, `{"\u0073tream":true}`, `"{\"stream\":true}"`, `{`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		defer fuzzbound.Check(t)()
		from, to, text := askForUsage(body)
		got := string(body[:from]) + text + string(body[to:])
		var before, after map[string]any
		if json.Unmarshal(body, &before) != nil || before == nil {
			if got != string(body) {
				t.Errorf("%q became %q", body, got)
			}
			return
		}
		if err := json.Unmarshal([]byte(got), &after); err != nil {
			t.Fatalf("%q became %q: %v", body, got, err)
		}
		if text != "" {
			options, _ := before["stream_options"].(map[string]any)
			want := map[string]any{}
			maps.Copy(want, options)
			want["include_usage"], before["stream_options"] = true, want
			if before["stream"] != true {
				t.Errorf("%q is no stream", body)
			}
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%q became %q", body, got)
		}
	})
}
