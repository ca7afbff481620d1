package house_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	doubtful = regexp.MustCompile(`\bsays (that|whether)\b`)
	skips    = regexp.MustCompile(`\.Skip(f|Now)?\(.*`)
	covered  = regexp.MustCompile(`coverage: ([0-9.]+)% of statements`)
)

// form measures what the files themselves show.
func form(tree []*file) []row {
	var lines, long, longTests, said, skipped, outside int
	for _, f := range tree {
		said += len(doubtful.FindAllString(f.comments, -1))
		if !f.test {
			lines += f.lines
			long += f.long
			continue
		}
		longTests += f.long
		for _, call := range skips.FindAllString(f.text, -1) {
			skipped++
			if strings.Contains(call, "../shared") {
				outside++
			}
		}
	}
	return []row{
		most("lines of Go without tests, all modules", lines, mostLines()),
		most("twins of 6 lines and more, without tests", len(twins(tree)), 10),
		most(`comments with "says that" or "says whether"`, said, 0),
		most("lines over 120 columns, without tests", long, 0),
		most("lines over 120 columns, tests", longTests, 0),
		most("tests that skip for want of ../shared", outside, 1),
		most("tests that may skip, whatever they need", skipped, -1),
	}
}

// room is folders whose lines of Go, without tests, may not grow beyond a number without a line of this table, and of
// docs/decisions/0070-house.md, that says so.
type room struct {
	name, folders string
	most          int
}

func rooms() []room {
	return []room{
		{"record", "collect discover rundb scrape source", 28_900},
		{"measure", "catalog continuity histest metric normalize summary units window", 27_630},
		{"conclude", "check compare explain headline history query sweep", 16_020},
		{"show", "export live report serve", 22_200},
		{"clients", "events", 9_600},
		{"command", "cmd", 14_380},
		{"around them", "bench internal lab", 18_960},
	}
}

// mostLines is the limit of all rooms together.
func mostLines() (n int) {
	for _, r := range rooms() {
		n += r.most
	}
	return n
}

// roomLines counts those of each room; what is in none is an error.
func roomLines(tree []*file) (rows []row, homeless []string) {
	count := make([]int, len(rooms()))
	for _, f := range tree {
		top, _, _ := strings.Cut(f.path, "/")
		i := slices.IndexFunc(rooms(), func(r room) bool { return slices.Contains(strings.Fields(r.folders), top) })
		switch {
		case i < 0:
			homeless = append(homeless, f.path)
		case !f.test:
			count[i] += f.lines
		}
	}
	for i, r := range rooms() {
		rows = append(rows, most("lines of Go without tests, "+r.name, count[i], r.most))
	}
	return rows, homeless
}

// before is what a package had at commit 550823a: lines of tests, in summary
// without what is internal/testkit/fakerun now, and the share of statements that
// they cover in percent.
type before struct {
	folder string
	tests  int
	cover  float64
}

func baseline() []before {
	return []before{
		{"metric", 673, 94.9}, {"units", 328, 98.2}, {"histest", 3480, 97.5},
		{"normalize", 3380, 96.6}, {"summary", 1544, 92.9},
	}
}

func tests(tree []*file) (rows []row) {
	for _, b := range baseline() {
		n := 0
		for _, f := range tree {
			if f.test && strings.HasPrefix(path.Dir(f.path)+"/", b.folder+"/") {
				n += f.lines
			}
		}
		rows = append(rows, row{"lines of tests in " + b.folder, float64(n), float64(b.tests), true})
	}
	return rows
}

// docLines is the length of what a reader of the package collect sees first.
func docLines(ctx context.Context) (row, error) {
	if _, err := os.Stat("collect"); os.IsNotExist(err) {
		return most("lines of go doc ./collect: there is no such package", 0, -1), nil
	}
	text, err := output(ctx, "go", "doc", "./collect")
	return most("lines of go doc ./collect", strings.Count(string(text), "\n"), 40), err
}

func binarySize(ctx context.Context) (row, error) {
	if _, err := output(ctx, "make", "-s", "build"); err != nil {
		return row{}, err
	}
	info, err := os.Stat("scrapestat")
	if err != nil {
		return row{}, fmt.Errorf("measure the binary: %w", err)
	}
	return most("bytes of the binary of make build", int(info.Size()), 49_000_000), nil
}

// trial is something that a newcomer may add, told by the word for one that is
// there: the files that know the word, its own folder aside, are those to touch.
type trial struct {
	what, word, home string
	most             int
}

func trials() []trial {
	return []trial{
		{"a format of exports", `"pytorch"`, "", 2},
		{"a kind of target", `triton\+|triton\.Kind\(`, "source/triton/", 1},
		{"a derived quantity", `mm_hit_ratio`, "catalog/packs/", 0},
		{"an engine", `(?i)\btgi`, "catalog/packs/", 0},
	}
}

func (t trial) row(tree []*file) row {
	known, n := regexp.MustCompile(t.word), 0
	for _, f := range tree {
		top, _, _ := strings.Cut(f.path, "/")
		ours := !slices.Contains([]string{"internal", "bench", "lab"}, top) && !f.test // the lab's recipes are tests
		if ours && (t.home == "" || !strings.HasPrefix(f.path, t.home)) && known.MatchString(strings.Join(f.code, "\n")) {
			n++
		}
	}
	return most("files to touch for "+t.what, n, t.most)
}

func (b before) coverage(ctx context.Context) (row, error) {
	out, err := output(ctx, "go", "test", "-cover", "./"+b.folder)
	if err != nil {
		return row{}, err
	}
	m := covered.FindSubmatch(out)
	if m == nil {
		return row{}, fmt.Errorf("measure coverage of %s: go test prints %q", b.folder, out)
	}
	share, err := strconv.ParseFloat(string(m[1]), 64)
	return row{"coverage of " + b.folder + ", %", share, b.cover, true}, err
}
