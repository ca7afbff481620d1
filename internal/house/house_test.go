package house_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

const shared = "a := 1\nb := 2\n\tc := 3 // why\n}\nd := 4\ne  := 5\nf := 6\n"

// TestTwins: equal code counts once, whatever stands around it; comments,
// blanks, imports, lone punctuation and tests do not.
func TestTwins(t *testing.T) {
	find := func(texts map[string]string) (n []string) {
		var tree []*file
		for _, name := range []string{"a.go", "b.go", "c.go", "c_test.go"} {
			if texts[name] != "" {
				tree = append(tree, newFile(name, texts[name]))
			}
		}
		for _, twin := range twins(tree) {
			n = append(n, strings.Fields(twin)[0])
		}
		return n
	}
	other := "x := 0\n" + strings.ReplaceAll(strings.ReplaceAll(shared, "// why", "// because"), "  ", " ")
	for name, c := range map[string]struct {
		texts map[string]string
		want  []string
	}{
		"two places":   {map[string]string{"a.go": shared, "b.go": other}, []string{"6"}},
		"three places": {map[string]string{"a.go": shared, "b.go": other, "c.go": shared}, []string{"6", "6"}},
		"longer":       {map[string]string{"a.go": shared + "g()\n", "b.go": other + "g()\n"}, []string{"7"}},
		"one file":     {map[string]string{"a.go": shared + shared}, []string{"6"}},
		"short":        {map[string]string{"a.go": shared, "b.go": strings.Replace(other, "c", "z", 1)}, nil},
		"test":         {map[string]string{"a.go": shared, "c_test.go": other}, nil},
		"a row of it":  {map[string]string{"a.go": strings.Repeat("x()\n", 8)}, nil},
		"imports": {map[string]string{"a.go": "import (\n" + shared + ")\n", "b.go": "import (\n" + shared + ")\n"},
			nil},
	} {
		if got := find(c.texts); !slices.Equal(got, c.want) {
			t.Errorf("%s: got twins of %q lines, want %q", name, got, c.want)
		}
	}
}

// TestForm counts what the rows of files count.
func TestForm(t *testing.T) {
	long := "// " + strings.Repeat("é", 118) + "\n"
	tree := []*file{
		newFile("a.go", "package a\n\n// f says\n//"+" that it is.\nfunc f() {} //"+" it says"+" whether\n"+long),
		newFile("a_test.go", "x(\"it says that\")\nt.Skip(\"no ."+"./shared\")\nt.Skipf(\"no tmux\")\n"+long+long),
	}
	var got []float64
	for _, r := range form(tree) {
		got = append(got, r.value)
	}
	if want := []float64{6, 0, 2, 1, 2, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestShow: a value at its limit is not over it.
func TestShow(t *testing.T) {
	for _, c := range []struct {
		r    row
		ok   bool
		want string
	}{
		{most("x", 10, 10), true, "x    10  <= 10  ok\n"},
		{most("x", 11, 10), false, "x    11  <= 10  over\n"},
		{most("x", 11, -1), true, "x    11    \n"},
		{row{"x", 9.5, 9.5, true}, true, "x  9.5  9.5  >= 9.5  ok\n"},
		{row{"x", 9.4, 9.5, true}, false, "x  9.5  9.4  >= 9.5  over\n"},
		{most("files to touch for an engine", 0, 0), true, "files to touch for an engine  12  0  <= 0  ok\n"},
	} {
		var b bytes.Buffer
		if ok, err := show(&b, []row{c.r}); ok != c.ok || err != nil || b.String() != c.want {
			t.Errorf("%v: %q, %v, %v", c.r, b.String(), ok, err)
		}
	}
}

// TestRooms: the lines of a room may not grow without a change of the table.
func TestRooms(t *testing.T) {
	t.Chdir("../..")
	tree, err := readTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, homeless := roomLines(tree)
	if len(homeless) > 0 {
		t.Errorf("no room for %v", homeless)
	}
	for _, r := range rows {
		if r.over() {
			t.Errorf("%s: %v, limit %v; remove as many as were added, or raise the limit in rooms() and say why in "+
				"docs/decisions/0070-house.md", r.name, r.value, r.limit)
		}
	}
}

// TestTrials: what a newcomer touches may not grow. The limits of the rows are
// what it shall become.
func TestTrials(t *testing.T) {
	t.Chdir("../..")
	tree, err := readTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, today := range map[string]float64{
		"a format of exports": 2, "a kind of target": 1, "a derived quantity": 0, "an engine": 0,
	} {
		i := slices.IndexFunc(trials(), func(c trial) bool { return c.what == what })
		if got := trials()[i].row(tree); got.value > today || got.value == 0 && got.limit > 0 {
			t.Errorf("%s: %v, want at most %v, and one at least unless nothing in Go shall know it", got.name, got.value, today)
		}
	}
}
