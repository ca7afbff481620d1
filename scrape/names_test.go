package scrape_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/scrape"
)

// page is an exposition of a counter, a histogram and 50 other gauges.
func page(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# TYPE requests_total counter\nrequests_total{a=\"x\"} %d\n", n)
	fmt.Fprintf(&b, "# TYPE requests_created gauge\nrequests_created{a=\"x\"} 1.7e9\n")
	fmt.Fprintf(&b, "# TYPE wait histogram\nwait_bucket{le=\"1\"} %d\nwait_bucket{le=\"+Inf\"} %d\nwait_sum "+
		"1\nwait_count %d\n", n, n, n)
	for i := range 50 {
		fmt.Fprintf(&b, "# TYPE other_%d gauge\nother_%d %d\n", i, i, n)
	}
	return b.String()
}

// restrict leaves the lines of a page whose names a request asks for.
func restrict(body string, names []string) string {
	if len(names) == 0 {
		return body
	}
	var b strings.Builder
	for line := range strings.Lines(body) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " ")
		name, _, _ = strings.Cut(name, "{")
		if slices.Contains(names, name) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// asked polls a server for ten seconds with --keep and returns which requests
// asked for names ('f'), or for all ('a'), and the snapshots.
func asked(t *testing.T, keep string, serve func(n int, names []string) (status int, body string)) (string,
	[]metric.Snapshot) {
	t.Helper()
	var log strings.Builder
	n := 0
	sink := run(t, scrape.Options{Interval: time.Second, Keep: regexp.MustCompile(keep)}, 6500*time.Millisecond,
		func(r *http.Request) (*http.Response, error) {
			names := r.URL.Query()["name[]"]
			log.WriteByte("af"[min(len(names), 1)])
			n++
			status, body := serve(n, names)
			return respond(r, status, body), nil
		})
	return log.String(), sink.all()
}

func TestKeptNamesAreAskedFor(t *testing.T) {
	honours := func(n int, names []string) (int, string) { return 200, restrict(page(n), names) }
	check := func(keep, want string, warnings int, serve func(int, []string) (int, string)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			got, polls := asked(t, keep, serve)
			if got != want {
				t.Errorf("%s: requests %s, want %s", keep, got, want)
			}
			said := 0
			for i, s := range polls {
				for _, w := range s.Warnings {
					if w.Code == "name_filter" {
						said++
					}
				}
				if s.Outcome != metric.OK {
					t.Errorf("%s: poll %d: %v %s", keep, i, s.Outcome, s.Err)
				}
			}
			if said != warnings {
				t.Errorf("%s: %d warnings, want %d", keep, said, warnings)
			}
		})
	}
	for _, keep := range []string{"^requests$", "^requests_total$", "^(requests|wait)$", `^(?:wait|requests)$`,
		`\Await\z`, "^wait$|^requests$", "^(wait|waits)$", "^[rw](equests|ait)$"} {
		check(keep, "afffffff", 0, honours)
	}
	// Patterns that no list of names says.
	for _, keep := range []string{"requests", "^requests", "wait$", "^(requests|wait.*)$", "(?i)^wait$",
		"^wait|requests$", "^other_[0-9]+$", "."} {
		check(keep, "aaaaaaaa", 0, honours)
	}
	// Fifty families make too long a query.
	check("^(requests|other_[0-9]|other_[1-4][0-9])$", "aaaaaaaa", 0, honours)
	// Nothing to save, and nothing to compare with.
	check("^requests$", "aaaaaaaa", 0, func(n int, names []string) (int, string) { return 200, "requests 1\n" })
	check("^nowhere$", "aaaaaaaa", 0, honours)

	check("^wait$", "afaaaaaaa", 1, func(n int, names []string) (int, string) { return 200, page(n) }) // ignores
	check("^wait$", "afaaaaaaa", 1, func(n int, names []string) (int, string) {
		if len(names) > 0 {
			return 400, "bad query"
		}
		return 200, page(n)
	})
	// prometheus_client with values of many processes.
	check("^wait$", "afaaaaaaa", 1, func(n int, names []string) (int, string) {
		if len(names) > 0 {
			return 200, ""
		}
		return 200, page(n)
	})
	// One series less.
	check("^wait$", "afaaaaaaa", 1, func(n int, names []string) (int, string) {
		body := restrict(page(n), names)
		if len(names) > 0 {
			body = strings.Replace(body, "wait_sum 1\n", "", 1)
		}
		return 200, body
	})
	// A server that starts again and then refuses, or has nothing: the same poll
	// asks for all, and that answer decides again.
	check("^wait$", "afffafaaaa", 1, func(n int, names []string) (int, string) {
		if n > 3 && len(names) > 0 {
			return 404, ""
		}
		return 200, restrict(page(n), names)
	})
	check("^wait$", "afffafaaaa", 1, func(n int, names []string) (int, string) {
		if n > 3 && len(names) > 0 {
			return 200, ""
		}
		return 200, restrict(page(n), names)
	})
}

// TestFilteredValues compares what is recorded with and without a server that
// filters.
func TestFilteredValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dicts := [2]string{}
		for i, honours := range []bool{false, true} {
			n := 0
			sink := run(t, scrape.Options{Interval: time.Second, Keep: regexp.MustCompile("^(requests|wait)$")},
				4500*time.Millisecond, func(r *http.Request) (*http.Response, error) {
					body := page(1 + n/2) // two requests of a poll see the same
					if n++; honours {
						body = restrict(body, r.URL.Query()["name[]"])
					}
					return respond(r, 200, body), nil
				})
			if got := len(sink.all()); got != 6 {
				t.Fatalf("%d polls", got)
			}
			d := sink.consumers[0].dict
			dicts[i] = fmt.Sprint(d.Families, len(d.Series), len(d.Slots))
		}
		if dicts[0] != dicts[1] {
			t.Errorf("dictionaries differ:\n%s\n%s", dicts[0], dicts[1])
		}
	})
}
