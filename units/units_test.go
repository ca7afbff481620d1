package units_test

import (
	"math"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/units"
)

func TestInfer(t *testing.T) {
	check := func(name, help, want string) {
		t.Helper()
		if got := units.Infer(name, help); got != want {
			t.Errorf("Infer(%q, %q) = %q, want %q", name, help, got, want)
		}
	}
	t.Run("table of aiperf.md", func(t *testing.T) {
		check("cache_hit_percent", "Hit rate (0.0-1.0)", "ratio")
		check("util", "GPU utilization, range 0 to 100", "percent")
		check("util_pct", "between 0-100%", "percent")
		check("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", "megabytes")
		check("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", "celsius")
		check("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", "megahertz")
		check("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", "percent")
		check("vllm:request_success", "Count of successfully processed requests.", "requests")
		check("nv_inference_first_response_histogram_ms", "Histogram of first response latency", "milliseconds")
		check("x", "Throughput in tokens/sec", "tokens/s")
		check("x", "Rate (requests/second)", "requests/s")
		check("e2e", "Histogram of e2e request latency in seconds.", "seconds")
		check("kv_block_count", "b", "blocks")
		check("fooMS", "time (ms)", "milliseconds")
		check("bw", "link (GB/s)", "gb/s")
		check("link_gb_s", "", "gb/s")
		check("queue_reqs", "", "requests")
		check("energy_joules", "", "joule")
		check("x", "in KB", "")
		check("x", "(in KB)", "kilobytes")
		check("x_seconds_count", "", "count")
		check("x", "Latency in second", "seconds")
		check("x", "Number of tokens (in flight)", "")
		check("iteration_tokens", "Number of tokens per engine_step.", "tokens")
		check("dynamo_component_request_bytes", "Total number of bytes received in requests", "bytes")
	})
	t.Run("ranges", func(t *testing.T) {
		check("x", "range 0-1", "ratio")
		check("x", "range 0-1.25", "ratio") // AIPerf's quirk
		check("x", "from 0.0 to 1.0", "ratio")
		check("x", "between 0–1", "ratio")
		check("x", "between 0 — 1", "ratio")
		check("x", "(0 TO 1)", "ratio")
		check("x", "KV-cache usage. 1 means 100 percent usage.", "ratio")
		check("x", "1.0 == 100%", "ratio")
		check("x", "1 equals 100 %", "ratio")
		check("x", "(0-100)", "percent")
		check("x", "(0.0 to 100.0)", "percent")
		check("x", "0 to 100 %", "percent")
		check("x", "0-100", "")
		check("x", "10-1", "")
		check("x", "0-10", "")
		check("x", "in 10-15 seconds", "")
		check("x", "CPU utilization rate [0.0 - 1.0]", "ratio")
		check("x_seconds", "(0-100) or (0-1)", "ratio")
	})
	t.Run("order", func(t *testing.T) {
		check("x_bytes", "(in seconds)", "seconds")
		check("x_bytes", "(in s)", "seconds")
		check("x_bytes", "(in parsecs)", "bytes")
		check("x_bytes", "size (in bytes) in seconds", "seconds") // an unknown tag, then phrases in their order
		check("x", "(in ms)", "milliseconds")
		check("x", "(in MJ)", "megajoule")
		check("x", "(in mJ)", "millijoule")
		check("x", "(in °C)", "celsius")
		check("x", "(in µs)", "microseconds")
		check("x", "in microseconds", "")
		check("x", "IN SECONDS", "seconds")
		check("x", "main seconds", "")
		check("x", "in  nanoseconds", "nanoseconds")
		check("x", "within seconds", "")
		check("x", "in tokens/s", "tokens/s")
		check("x", "in tokens", "tokens")
		check("x", "(tokens)", "")
		check("x", "(in MB/s)", "mb/s")
		check("x", "in MB/s", "mb/s")
		check("x", "(requests/sec)", "requests/s")
	})
	t.Run("tags", func(t *testing.T) {
		for tag, want := range map[string]string{"MB": "megabytes", "GiB": "gigabytes", "GB": "gigabytes", "KiB": "kilobytes",
			"TB": "terabytes", "B": "bytes", "F": "fahrenheit", "°F": "fahrenheit", "K": "kelvin", "Hz": "hertz",
			"GHz": "gigahertz",
			"W":   "watt", "mW": "milliwatt", "J": "joule", "sec": "seconds", "us": "microseconds", "ns": "nanoseconds",
			"GB/s":    "gb/s",
			"percent": "percent", "mib": "", "TiB": ""} {
			check("x", "Amount (in "+tag+").", want)
		}
	})
}

// The longest end of a name wins, whatever the order of the table.
func TestInferEndings(t *testing.T) {
	for unit, names := range map[string]string{
		"seconds": "_seconds _seconds_total", "milliseconds": "_milliseconds _ms _ms_total",
		"nanoseconds": "_nanoseconds _ns _ns_total", "bytes": "_bytes _bytes_total", "kilobytes": "_kilobytes",
		"megabytes": "_megabytes", "gigabytes": "_gigabytes", "count": "_total _count _kilobytes_total _celsius_total",
		"tokens": "_tokens _tokens_total", "requests": "_requests _requests_total _reqs request_success num_requests_x " +
			"Num_Requests_running",
		"errors": "_errors _errors_total _error_count _error_count_total", "blocks": "_blocks _blocks_total _block_count",
		"gb/s": "_gb_s", "ratio": "_ratio", "percent": "_percent _perc", "celsius": "_celsius", "joule": "_joules",
		"watt": "_watts",
		"":     "_us _s _pct _joule _watt _mb bytes num_request",
	} {
		for name := range strings.FieldsSeq(names) {
			if got := units.Infer("x"+name, ""); got != unit {
				t.Errorf("Infer(%q) = %q, want %q", "x"+name, got, unit)
			}
			if got := units.Infer(strings.ToUpper("x"+name), ""); got != unit {
				t.Errorf("Infer(%q) = %q, want %q", strings.ToUpper("x"+name), got, unit)
			}
		}
	}
}

// S08 of faults.md: the units that AIPerf misses or gets wrong.
func TestOwn(t *testing.T) {
	check := func(name, help, declared, want string) {
		t.Helper()
		if got := units.InferExtended(name, help, declared); got != want {
			t.Errorf("Own(%q, %q, %q) = %q, want %q", name, help, declared, got, want)
		}
	}
	t.Run("nothing to add", func(t *testing.T) {
		check("x_seconds", "", "", "")
		check("x_seconds", "", "seconds", "")
		check("x_ms", "", "ms", "")
		check("x", "", "", "")
		check("x_tokens_total", "", "", "")
		check("x_seconds_count", "", "", "")
		check("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", "", "")
		check("nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", "", "")
		check("x_percent", "Ratio of hits", "", "")
		check("util", "range 0 to 100", "", "")
		check("x", "between 0-100%", "", "")
		check("x_errors", "", "", "")
	})
	t.Run("names", func(t *testing.T) {
		check("nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds", "", "microseconds")
		check("nv_inference_request_duration_us", "", "", "microseconds")
		check("x_us_total", "", "", "microseconds")
		check("vllm:e2e_request_latency_s", "E2E latency", "", "seconds")
		check("x_S", "", "", "seconds")
		check("disk_usage_pct", "", "", "percent")
		check("x_mib", "", "", "mebibytes")
		check("avg_prompt_throughput_toks_per_s", "", "", "tokens/s")
		check("x_per_second", "", "", "")
		check("x_mb_s", "", "", "mb/s")
		check("x_mhz", "", "", "megahertz")
		check("status", "", "", "")
	})
	t.Run("help", func(t *testing.T) {
		check("nv_cache_insertion_duration", "Total cache insertion duration, in microseconds", "", "microseconds")
		check("nv_gpu_power_usage", "GPU power usage in watts", "", "watt")
		check("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", "", "mebibytes")
		check("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active (in %).", "", "ratio")
		check("x", "size in KB", "", "kilobytes")
		check("x", "wait (minutes)", "", "minutes")
		check("x_us", "time in milliseconds", "", "")
	})
	t.Run("ranges", func(t *testing.T) {
		check("x", "range 0-1.25", "", units.Number)
		check("x_s", "range 0-1.25", "", "seconds")
		check("x", "range 0-1,000", "", units.Number)
		check("x", "0-1 %", "", "percent")
		check("x", "range 0-1", "", "")
	})
	t.Run("declared", func(t *testing.T) {
		check("x", "in seconds", "us", "microseconds")
		check("x_bytes", "", "MiB", "mebibytes")
		check("x", "", "1", "ratio")
		check("x", "", "%", "percent")
		check("x", "", "furlongs", "furlongs")
		check("x", "", "evil\x1b[2J", "")
		check("x_us", "", "two words", "microseconds")
		for declared, want := range map[string]string{"s": "seconds", "Millisecond": "milliseconds",
			"nanosecond": "nanoseconds",
			"byte":       "bytes", "kib": "kibibytes", "gib": "gibibytes", "tib": "tebibytes", "joules": "joule",
			"watts": "watt"} {
			check("x", "", declared, want)
		}
	})
}

func TestFormat(t *testing.T) {
	check := func(v float64, unit, want string) {
		t.Helper()
		if got := units.Format(v, unit); got != want {
			t.Errorf("Format(%v, %q) = %q, want %q", v, unit, got, want)
		}
	}
	t.Run("durations", func(t *testing.T) {
		check(0.0123, "seconds", "12.3 ms")
		check(0, "seconds", "0 s")
		check(1, "seconds", "1 s")
		check(0.99996, "seconds", "1 s")
		check(-0.5, "seconds", "-500 ms")
		check(12.345, "milliseconds", "12.3 ms")
		check(1500, "milliseconds", "1.5 s")
		check(250, "microseconds", "250 µs")
		check(3, "nanoseconds", "3 ns")
		check(59.94, "seconds", "59.9 s")
		check(59.99, "seconds", "1m 00s")
		check(754, "seconds", "12m 34s")
		check(-754, "seconds", "-12m 34s")
		check(3599.7, "seconds", "1h 00m")
		check(2, "hours", "2h 00m")
		check(90, "minutes", "1h 30m")
		check(3, "days", "3d 00h")
		check(1e9, "days", "1,000,000,000 d")
	})
	t.Run("sizes", func(t *testing.T) {
		check(1536, "bytes", "1.5 KiB")
		check(1023, "bytes", "1,023 B")
		check(1023.9, "bytes", "1 KiB")
		check(80, "gibibytes", "80 GiB")
		check(2048, "mebibytes", "2 GiB")
		check(1, "kibibytes", "1 KiB")
		check(2, "tebibytes", "2 TiB")
		check(1.5e6, "bytes/s", "1.43 MiB/s")
		check(500, "kilobytes", "500 kB")
		check(1500, "megabytes", "1.5 GB")
		check(2, "gigabytes", "2 GB")
		check(2, "terabytes", "2 TB")
		check(1200, "mb/s", "1.2 GB/s")
		check(25.6, "gb/s", "25.6 GB/s")
		check(1e20, "bytes", "88,818 PiB")
	})
	t.Run("counts", func(t *testing.T) {
		check(1234567, "tokens", "1,234,567 tokens")
		check(-1234, "requests", "-1,234 requests")
		check(999.6, "count", "1,000")
		check(54.62, "", "54.6")
		check(1.25, units.Number, "1.25")
		check(1234.5, "tokens/s", "1,235 tokens/s")
		check(0.00001234, "", "1.23e-05")
		check(1e18, "count", "1e+18")
		check(5, "furlongs", "5 furlongs")
	})
	t.Run("others", func(t *testing.T) {
		check(0.871, "ratio", "87.1 %")
		check(87.1, "percent", "87.1 %")
		check(45.2, "celsius", "45.2 °C")
		check(100, "fahrenheit", "100 °F")
		check(300, "kelvin", "300 K")
		check(312, "watt", "312 W")
		check(1500, "milliwatt", "1.5 W")
		check(2500, "joule", "2.5 kJ")
		check(1, "millijoule", "1 mJ")
		check(3, "megajoule", "3 MJ")
		check(1980, "megahertz", "1.98 GHz")
		check(50, "hertz", "50 Hz")
		check(2, "gigahertz", "2 GHz")
		check(math.NaN(), "seconds", "NaN")
		check(math.Inf(1), "bytes", "+Inf")
		check(math.Inf(-1), "", "-Inf")
		check(math.MaxFloat64, "days", "+Inf")
	})
}

// FuzzUnits feeds arbitrary text: nothing panics, Own never repeats Infer, and
// every unit can be written.
func FuzzUnits(f *testing.F) {
	f.Add("x_us", "time (in %) 0-1.25", "", 1.5)
	f.Add("x_seconds", "range 0-1,,5 %", "MiB", 1e300)
	f.Fuzz(func(t *testing.T, name, help, declared string, value float64) {
		unit, own := units.Infer(name, help), units.InferExtended(name, help, declared)
		if own != "" && own == unit {
			t.Errorf("Own(%q, %q, %q) repeats %q", name, help, declared, own)
		}
		for _, u := range []string{unit, own} {
			if units.Format(value, u) == "" {
				t.Errorf("Format(%v, %q) is empty", value, u)
			}
		}
	})
}

func TestFormatZero(t *testing.T) {
	for unit, want := range map[string]string{"tokens": "0 tokens", "": "0", "seconds": "0 s", "bytes": "0 B",
		"ratio": "0 %"} {
		if got := units.Format(0, unit); got != want {
			t.Errorf("%q: got %q, want %q", unit, got, want)
		}
	}
}
