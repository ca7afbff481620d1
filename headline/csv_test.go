package headline_test

import (
	"math"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/headline"
)

func TestReadCSV(t *testing.T) {
	got, err := headline.ReadCSV(strings.NewReader("\ufeffrun, engine,ttft_mean,error_ratio,itl_p99\n" +
		"a,vllm,0.25,0,\nb,vllm,NaN,0.01,-1\n"))
	if err != nil || len(got) != 2 {
		t.Fatalf("%d runs, %v", len(got), err)
	}
	a, b := got[0], got[1]
	if a.Run != "a" || a.Engine != "vllm" || len(a.Values) != 3 {
		t.Errorf("run %q of %q has %d values", a.Run, a.Engine, len(a.Values))
	}
	if v := a.Values[0]; v.Name() != "ttft_mean" || v.Value != 0.25 || v.Missing != "" || v.Floor != 1e-3 {
		t.Errorf("ttft_mean is %+v", v)
	}
	if v := a.Values[2]; v.Missing != "no value in the file" || !math.IsNaN(v.Value) {
		t.Errorf("an empty cell is %+v", v)
	}
	if b.Values[0].Missing == "" || b.Values[1].Missing != "" || b.Values[2].Missing == "" {
		t.Errorf("NaN, 0.01 and -1 are %+v", b.Values)
	}
}

func TestReadCSVRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "no line of values",
		"ttft_mean\n":                "no line of values",
		"ttft\n1\n":                  `1:1: column "ttft" is no row (known: run, engine, model, estimator, request_rate`,
		"ttft_mean,ttft_mean\n1,2\n": `1:11: column "ttft_mean" is empty or there twice`,
		"ttft_mean\n450ms\n":         `2:1: ttft_mean is "450ms", want a number`,
		"run,ttft_mean\na,1\na,2\n":  `3:1: run "a" is there twice`,
		"run,ttft_mean\na\n":         "wrong number of fields",
	} {
		if _, err := headline.ReadCSV(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add("run,ttft_mean,error_ratio\na,1,0\nb,2,\n")
	f.Add("itl_p99\n\"1\n")
	f.Add("run,ttft_mean,error_ratio\n,,\n,")
	f.Fuzz(func(t *testing.T, text string) {
		runs, err := headline.ReadCSV(strings.NewReader(text))
		for _, r := range runs {
			for _, v := range r.Values {
				if err != nil || v.Missing == "" && !(v.Value >= 0 && v.Value <= math.MaxFloat64) {
					t.Errorf("%q: %v, %v %q", text, err, v.Value, v.Missing)
				}
			}
		}
	})
}

// TestCSVIsNotCut: a file beyond the limit is refused, not read as if it ended there.
func TestCSVIsNotCut(t *testing.T) {
	long := "run,ttft_mean\n" + strings.Repeat(" ", 16<<20-16) + "a,12345\n"
	if got, err := headline.ReadCSV(strings.NewReader(long)); err == nil || !strings.Contains(err.Error(), "MiB") {
		t.Errorf("%d lines of a file that is too long, %v", len(got), err)
	}
}

func TestNamed(t *testing.T) {
	for name, want := range map[string]string{"ttft_mean": "seconds", "e2e_p99": "seconds", "itl_p50": "seconds",
		"queue_mean": "seconds", "ttft_p99.9": "seconds", "audio_ttfp_p90": "seconds", "error_ratio": "ratio",
		"kv_usage": "ratio"} {
		if row, ok := headline.Named(name); !ok || row.Name() != name || row.Unit != want {
			t.Errorf("%s: %+v %v", name, row, ok)
		}
	}
	for _, name := range []string{"", "ttft", "ttft_p", "ttft_p0", "ttft_p100", "ttft_px", "running_p99", "vllm:x_p99"} {
		if row, ok := headline.Named(name); ok {
			t.Errorf("%s is %+v", name, row)
		}
	}
}
