package export_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/export"
	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/normalize"
	"github.com/scrapestat/scrapestat/summary"
)

// floatText returns how the JSON shows a number.
func floatText(t testing.TB, v float64) string {
	t.Helper()
	r := oneCounter(v)
	var b strings.Builder
	if err := export.JSON(&b, r, export.Options{}); err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(b.String(), `"total": `)
	if !ok {
		return ""
	}
	return rest[:strings.IndexAny(rest, ",\n")]
}

func oneCounter(total float64) *summary.Run {
	c := &normalize.Counter{Defined: true, Total: total}
	return &summary.Run{Endpoints: make([]summary.Endpoint, 1), Metrics: []summary.Metric{{Name: "c", Type: metric.Counter,
		Series: []summary.Series{{Series: normalize.Series{Counter: c}}}}}}
}

// TestFloatText has Python's repr() of each number as the wanted text.
func TestFloatText(t *testing.T) {
	check := func(v float64, want string) {
		t.Helper()
		if got := floatText(t, v); got != want {
			t.Errorf("%g: got %s, want %s", v, got, want)
		}
	}
	check(0, "0.0")
	check(math.Copysign(0, -1), "-0.0")
	check(50, "50.0")
	check(-7, "-7.0")
	check(0.1, "0.1")
	check(1.0/3, "0.3333333333333333")
	check(0.0001, "0.0001")
	check(0.00009999, "9.999e-05")
	check(1e-5, "1e-05")
	check(-1.5e-7, "-1.5e-07")
	check(5e-324, "5e-324")
	check(math.MaxFloat64, "1.7976931348623157e+308")
	check(1e15, "1000000000000000.0")
	check(9007199254740991, "9007199254740991.0")
	check(9007199254740993, "9007199254740992.0")
	check(9999999999999998, "9999999999999998.0")
	check(1e16, "1e+16")
	check(12345678901234567890, "1.2345678901234567e+19")
	check(1e22, "1e+22")
	check(123456.789, "123456.789")
	check(math.NaN(), "")
	check(math.Inf(1), "")
	check(math.Inf(-1), "")
}

// oraclePython builds repr() from the digits of strconv by the rule of Python's
// float_repr_style "short": an exponent if it is below -4 or at least 16.
func oraclePython(v float64) string {
	digits, exp, _ := strings.Cut(strconv.FormatFloat(math.Abs(v), 'e', -1, 64), "e")
	e, _ := strconv.Atoi(exp)
	digits = strings.Replace(digits, ".", "", 1)
	sign := ""
	if math.Signbit(v) {
		sign = "-"
	}
	switch {
	case e < -4 || e >= 16:
		if len(digits) > 1 {
			digits = digits[:1] + "." + digits[1:]
		}
		mark := "+"
		if e < 0 {
			mark, e = "-", -e
		}
		return sign + digits + "e" + mark + strings.Repeat("0", max(0, 2-len(strconv.Itoa(e)))) + strconv.Itoa(e)
	case e < 0:
		return sign + "0." + strings.Repeat("0", -e-1) + digits
	}
	if n := e + 1 - len(digits); n >= 0 {
		return sign + digits + strings.Repeat("0", n) + ".0"
	}
	return sign + digits[:e+1] + "." + digits[e+1:]
}

func checkFloat(t interface{ Fatalf(string, ...any) }, tb testing.TB, v float64) {
	got := floatText(tb, v)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		if got != "" {
			t.Fatalf("%v is written as %q", v, got)
		}
		return
	}
	back, err := strconv.ParseFloat(got, 64)
	if err != nil || math.Float64bits(back) != math.Float64bits(v) {
		t.Fatalf("%x is written as %q, which reads back as %v, %v", math.Float64bits(v), got, back, err)
	}
	if want := oraclePython(v); got != want {
		t.Fatalf("%x: got %s, want %s", math.Float64bits(v), got, want)
	}
}

func TestFloatTextProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { checkFloat(rt, t, rapid.Float64().Draw(rt, "v")) })
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		checkFloat(t, t, math.Float64frombits(rng.Uint64()))
		checkFloat(t, t, math.Round(rng.NormFloat64()*1e6)/1000)
		checkFloat(t, t, math.Trunc(math.Exp(rng.Float64()*45)))
	}
}

func FuzzFloatText(f *testing.F) {
	for _, v := range []float64{0, 0.1, 1e16, 1e-4, 5e-324} {
		f.Add(math.Float64bits(v))
	}
	f.Fuzz(func(t *testing.T, bits uint64) { checkFloat(t, t, math.Float64frombits(bits)) })
}
