package faults_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// hardening names for each finding about what hurts a benchmark, leaks or hangs
// (K1 to K26) the files and the tests that show it; "" is one that is open.
var hardening = [...]string{
	1: "cmd/scrapestat/hardening_test.go TestHardening, cmd/scrapestat/hardening_faults_test.go TestCommandFaults, " +
		"rundb/hardening_test.go TestHardening, events/hardening_test.go TestHardening",
	2:  "cmd/scrapestat/hardening_test.go TestHardening",
	3:  "cmd/scrapestat/hardening_test.go TestHardening",
	4:  "cmd/scrapestat/hardening_test.go TestHardening",
	5:  "cmd/scrapestat/hardening_test.go TestHardening",
	6:  "cmd/scrapestat/hardening_cancel_test.go TestHardeningCancel",
	7:  "cmd/scrapestat/hardening_test.go TestHardening",
	8:  "rundb/hardening_test.go TestHardening",
	9:  "cmd/scrapestat/hardening_test.go TestHardening",
	10: "cmd/scrapestat/hardening_test.go TestHardening",
	11: "rundb/hardening_test.go TestHardening",
	12: "cmd/scrapestat/hardening_leaks_test.go TestHardeningLeaks",
	13: "internal/faults/secrets_test.go TestFaultEcho",
	14: "cmd/scrapestat/hardening_leaks_test.go TestHardeningLeaks",
	15: "discover/trust_test.go TestHardeningTrust",
	16: "report/formats_test.go TestHardening",
	17: "cmd/scrapestat/hardening_test.go TestHardening",
	18: "cmd/scrapestat/hardening_linear_test.go TestHardeningFamilies",
	19: "rundb/hardening_test.go TestHardening, rundb/beside_unix_test.go TestHardeningBeside",
	20: "cmd/scrapestat/hardening_test.go TestHardening, collect/hardening_test.go TestHardeningMarks, " +
		"rundb/hardening_test.go TestHardening, " +
		"events/proxy/hardening_test.go TestHardening, source/promstore/hardening_test.go TestHardening",
	21: "cmd/scrapestat/hardening_test.go TestHardening, scrape/hardening_memory_test.go TestHardeningMemory",
	22: "discover/guard_internal_test.go TestHardening",
	23: "export/label_columns_test.go TestHardening, internal/interop/labels_test.go TestHardening",
	24: "cmd/scrapestat/hardening_test.go TestHardening",
	25: "check/judge_test.go TestHardening",
	26: "internal/release/release_test.go TestHardening",
}

// TestHardening lists the findings, and holds each that is no longer open to a test
// of its number.
func TestHardening(t *testing.T) {
	for n, shown := range hardening {
		if n == 0 {
			continue
		}
		name := "K" + strconv.Itoa(n)
		t.Run(name, func(t *testing.T) {
			if shown == "" {
				t.Log("open")
				return
			}
			for one := range strings.SplitSeq(shown, ", ") {
				file, function, _ := strings.Cut(one, " ")
				text, err := os.ReadFile(filepath.Join("../..", file))
				if err != nil {
					t.Fatal(err)
				}
				_, body, found := strings.Cut(string(text), "\nfunc "+function+"(")
				body, _, _ = strings.Cut(body, "\n}\n")
				if !found || !strings.Contains(body, `t.Run("`+name+`"`) {
					t.Fatalf("%s has no %s/%s", file, function, name)
				}
				t.Logf("%s: %s/%s", file, function, name)
			}
		})
	}
}
