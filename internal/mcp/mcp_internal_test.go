package mcp

// Pages, paths and requests are tested from within: the program itself, with a client at its other end, is tested where
// its commands are.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

// document makes JSON of objects, lists and texts, in which each number is another.
func document(t *rapid.T, depth int, next *int) any {
	switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
	case kind == 0 && depth < 3:
		o := texttab.Object{}
		for i := range rapid.IntRange(0, 12).Draw(t, "fields") {
			o = o.With(fmt.Sprint("f", i), document(t, depth+1, next))
		}
		return o
	case kind == 1 && depth < 3:
		list := []any{}
		for range rapid.IntRange(0, 30).Draw(t, "items") {
			list = append(list, document(t, depth+1, next))
		}
		return list
	case kind == 2:
		return strings.Repeat("x", rapid.IntRange(0, maxText).Draw(t, "length"))
	}
	*next++
	return json.Number(strconv.Itoa(*next))
}

var aNumber = regexp.MustCompile(`[:\[,](\d+)\b`)

// TestPages: the pages of a document are within their limits and together have all of it.
func TestPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		r := &result{document: texttab.NewObject("schema", "x", "rows", document(t, 0, &n), "more", document(t, 0, &n))}
		seen := map[int]bool{}
		q := &question{tool: "show"}
		for at, pages := 0, 0; ; pages++ {
			text, err := r.page(q, texttab.NewObject("note", note), nil, at)
			if err != nil || len(text) > maxChars || pages > 2*n+2 {
				t.Fatalf("page %d at %d: %d characters, %v", pages, at, len(text), err)
			}
			doc, err := decode(text)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range aNumber.FindAllSubmatch(encode(field(doc, "data")), -1) {
				i, _ := strconv.Atoi(string(m[1]))
				seen[i] = true
			}
			cursor, ok := field(doc, "next_cursor").(string)
			if !ok {
				break
			}
			q.cursor = cursor
			if at, err = readCursor(q); err != nil {
				t.Fatal(err)
			}
		}
		if len(seen) != n {
			t.Fatalf("%d of %d numbers are on a page", len(seen), n)
		}
	})
}

// rowsOf are those of an answer about a table.
func rowsOf(t *testing.T, answer any) (out []texttab.Object) {
	t.Helper()
	data := field(answer, "data")
	n, err := strconv.Atoi(fmt.Sprint(field(data, "rows")))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		row := slices.Clone(field(data, "same").(texttab.Object))
		for _, c := range field(data, "columns").(texttab.Object) {
			row = row.With(c.Name, c.Value.([]any)[i])
		}
		out = append(out, row)
	}
	return out
}

// commands is what a test has for the program.
type commands struct {
	calls [][]string
	do    func(ctx context.Context, args []string, stdout, stderr io.Writer) int
}

func newTestServer(t *testing.T, do func(ctx context.Context, args []string, stdout, stderr io.Writer) int) (*server,
	*commands) {
	t.Helper()
	r, err := openRoots([]string{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	c := &commands{do: do}
	return &server{roots: r, turn: make(chan struct{}, 1),
		command: func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
			c.calls = append(c.calls, args)
			return c.do(ctx, args, stdout, stderr)
		}}, c
}

// TestTable: rows in pages are those of the command, over several of its calls, and one call serves many pages.
func TestTable(t *testing.T) {
	const rows = rowsRead + 700
	s, c := newTestServer(t, func(_ context.Context, args []string, stdout, _ io.Writer) int {
		var offset, limit int
		for _, a := range args {
			fmt.Sscanf(a, "--offset=%d", &offset)
			fmt.Sscanf(a, "--limit=%d", &limit)
		}
		for i := offset; i < min(rows, offset+limit); i++ {
			fmt.Fprintf(stdout, `{"run":"a","n":%d,"start_ns":17953345712172165%02d}`+"\n", i, i%100)
		}
		return 0
	})
	q := question{tool: "query", read: readTable, words: []string{"x"}}
	n := 0
	for pages := 0; ; pages++ {
		got, _, err := s.answer(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := decode(got.StructuredContent.(json.RawMessage))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rowsOf(t, answer) {
			want := fmt.Sprintf(`{"run":"a","n":%d,"start_ns":17953345712172165%02d}`, n, n%100)
			if text := string(encode(row)); text != want {
				t.Fatalf("row %s, want %s", text, want)
			}
			n++
		}
		if text := got.Content[0].(*mcp.TextContent).Text; !strings.HasPrefix(text, note+"\n{") || len(text) > maxChars {
			t.Fatalf("the text has %d characters and begins %.60q", len(text), text)
		}
		cursor, ok := field(answer, "next_cursor").(string)
		if !ok {
			break
		}
		q.cursor = cursor
	}
	if n != rows || len(c.calls) != 2 {
		t.Errorf("%d rows of %d calls, want %d of 2", n, len(c.calls), rows)
	}
	if want := []string{"query", "--format=jsonl", "--offset=10000", "--limit=10001", "--", "x"}; !slices.Equal(c.calls[1],
		want) {
		t.Errorf("command %q, want %q", c.calls[1], want)
	}
}

// TestKept: the last results are kept, no more.
func TestKept(t *testing.T) {
	s, c := newTestServer(t, func(_ context.Context, _ []string, stdout, _ io.Writer) int {
		fmt.Fprint(stdout, "{}")
		return 0
	})
	for _, word := range []string{"a", "b", "c", "d", "a", "b", "e", "c"} {
		if _, _, err := s.answer(t.Context(), question{tool: "catalog show", read: readDocument,
			words: []string{word}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.calls) != 6 { // c is gone
		t.Errorf("%d calls of the command, want 6: %q", len(c.calls), c.calls)
	}
}

// TestOutcomes: a bad answer is one; without one, what was said is the error. Texts of strangers are harmless.
func TestOutcomes(t *testing.T) {
	for _, test := range []struct {
		name, stdout, stderr string
		code                 int
		want, err            string
	}{
		{"check fails", `{"verdict":"FAIL"}`, "", 3, `"verdict":"FAIL"`, ""},
		{"warns", `{}`, "scrapestat: data incomplete\n", 4, `"warnings":["data incomplete"]`, ""},
		{"usage", "", "scrapestat: unknown\nTry: scrapestat show --help\n", 2, "", note + "\nunknown"},
		{"silent", "", "", 1, "", note + "\nit ended with 1"},
		{"half", `{"a":`, "scrapestat: disk full\n", 1, "", "disk full"},
		{"hostile", `{"\u0000k":"\u001b[2J` + strings.Repeat("y", 400) + `","z":"\u202e"}`, "", 0,
			`"\\x00k":"\\x1b[2J` + strings.Repeat("y", 292) + `…","z":"\\u202e"`, ""},
	} {
		s, _ := newTestServer(t, func(_ context.Context, _ []string, stdout, stderr io.Writer) int {
			fmt.Fprint(stdout, test.stdout)
			fmt.Fprint(stderr, test.stderr)
			return test.code
		})
		got, _, err := s.answer(t.Context(), question{tool: "check", read: readDocument})
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "Try:") {
				t.Errorf("%s: error %v, want %q", test.name, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if text := got.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, test.want) {
			t.Errorf("%s: %s, want %s", test.name, text, test.want)
		}
	}
}

// TestDeadline: a call has 30 s, those in which it waits for another among them.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := 0
		s, _ := newTestServer(t, func(ctx context.Context, _ []string, _, _ io.Writer) int {
			if running++; running > 1 {
				t.Error("two analyses at once")
			}
			<-ctx.Done()
			running--
			return 1
		})
		began := time.Now()
		ends := make(chan error, 2)
		for range 2 {
			go func() {
				_, _, err := s.answer(t.Context(), question{tool: "explain", read: readDocument})
				ends <- err
			}()
		}
		for range 2 {
			if err := <-ends; err == nil || !strings.Contains(err.Error(), "no answer within 30s") {
				t.Errorf("error %v", err)
			}
		}
		if d := time.Since(began); d != maxCall {
			t.Errorf("both ended after %v, want %v", d, maxCall)
		}
	})
}

// TestRoots: what lies outside is refused however it is named.
func TestRoots(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	for _, dir := range []string{root + "/run", root + "/a@b=c", root + "/linked", outside + "/run"} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(dir+"/run.db", []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"/out": outside + "/run", "/in": root + "/run",
		"/linked/server_metrics_export.json": outside + "/run/run.db"} {
		if err := os.Symlink(to, root+from); err != nil {
			t.Skip(err)
		}
	}
	r, err := openRoots([]string{root})
	if err != nil {
		t.Fatal(err)
	}
	root = r[0]
	for text, want := range map[string]string{"run": root + "/run", root + "/run": root + "/run", "in": root + "/run",
		"run/run.db": root + "/run", "base=run@30s..90s": "base=" + root + "/run@30s..90s", "a@b=c": root + "/a@b=c",
		"a@b=c@traffic": root + "/a@b=c@traffic", "run@phase=x@y": "", "out": "", "../" + filepath.Base(outside): "",
		outside + "/run": "", "run/../..": "", "linked": "", "": "", "none": "", "-o": "", "run\x00": ""} {
		got, err := r.run(text, "")
		if (err != nil) != (want == "") || err == nil && got.arg != want {
			t.Errorf("%q: %q, %v, want %q", text, got.arg, err, want)
		}
	}
	if got, err := r.run("run", "high/2"); err != nil || got.arg != root+"/run@high/2" {
		t.Errorf("%q, %v", got.arg, err)
	}
	if _, err := r.run("run@low", "high"); err == nil {
		t.Error("two windows are taken")
	}
	if list, whole := r.recordings(); !whole || len(list) != 3 {
		t.Errorf("recordings %q, %v, want 3", list, whole)
	}
	if _, err := openRoots([]string{root + "/run/run.db"}); err == nil {
		t.Error("a file is taken as a root")
	}
}

// TestCursor: one of another question, or of other files, is refused by name.
func TestCursor(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "run.db")
	q := &question{tool: "show", runs: []run{{arg: dir, path: dir}}}
	q.cursor = cursorAt(q, 7)
	if at, err := readCursor(q); at != 7 || err != nil {
		t.Fatalf("%d, %v", at, err)
	}
	for _, text := range []string{"x", "e30", q.cursor[:10]} {
		if _, err := readCursor(&question{tool: "show", cursor: text}); err == nil ||
			!strings.HasPrefix(err.Error(), "bad_cursor") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := readCursor(&question{tool: "explain", runs: q.runs, cursor: q.cursor}); err == nil {
		t.Error("the cursor of another tool is taken")
	}
	if err := os.WriteFile(db, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readCursor(q); err == nil || !strings.HasPrefix(err.Error(), "stale_cursor") {
		t.Errorf("a run that grew: %v", err)
	}
}

// TestRequests: what is no request is answered, and what follows is read.
func TestRequests(t *testing.T) {
	long := strings.Repeat("x", 10<<20)
	const ping = `{"jsonrpc":"2.0","method":"ping"}` + "\n" // to which nobody owes an answer
	for in, want := range map[string]string{
		`{"jsonrpc":"2.0","id":5,"method":"` + long + `"}` + "\n":         `"id":5,"jsonrpc"`,
		`{"method":"` + long + `","jsonrpc": "2.0", "id" : "a b"}` + "\n": `"id":"a b","jsonrpc"`,
		`{"a":{"id":7,"x":"` + long + `"}}` + "\n":                        `"id":null,"jsonrpc"`,
		"{\n":                                 `-32700`,
		`{"id":1}` + "\n":                     `-32600`,
		"[" + strings.TrimSpace(ping) + "]\n": `-32600`,
		"\r\n \n":                             ``,
	} {
		var refused bytes.Buffer
		all := strings.NewReader(in + ping + `{"half":`)
		got, err := io.ReadAll(&requests{in: newLineReader(all), to: newAnswers(&refused)})
		if err != nil || string(got) != ping || !strings.Contains(refused.String(), want) ||
			strings.Count(refused.String(), "\n") != min(len(want), 1) {
			t.Errorf("%.60q: %q, %v, refused %q, want %s", in, got, err, refused.String(), want)
		}
	}
}

// TestSettle: the stream of requests ends after the last answer, or when that is late.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for answered, want := range map[bool]time.Duration{true: time.Second, false: maxCall} {
			to := newAnswers(io.Discard)
			r := &requests{in: newLineReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")), to: to}
			began := time.Now()
			time.AfterFunc(time.Second, func() {
				fmt.Fprintln(to, `{"jsonrpc":"2.0","method":"notifications/progress"}`)
				if answered {
					fmt.Fprintln(to, `{"jsonrpc":"2.0","id":1,"result":{}}`)
				}
			})
			if _, err := io.ReadAll(r); err != nil || time.Since(began) != want {
				t.Errorf("answered %v: ended with %v after %v, want %v", answered, err, time.Since(began), want)
			}
		}
	})
}

func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","method":"ping"}` + "\n{}\nx\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if bytes.Contains(in, []byte("id")) { // an answer would be waited for
			return
		}
		var refused bytes.Buffer
		out, err := io.ReadAll(&requests{in: newLineReader(bytes.NewReader(in)), to: newAnswers(&refused)})
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for _, stream := range [][]byte{out, refused.Bytes()} {
			for s := bufio.NewScanner(bytes.NewReader(stream)); s.Scan(); lines++ {
				if !json.Valid(s.Bytes()) {
					t.Errorf("%q is no JSON", s.Bytes())
				}
			}
		}
		if lines > bytes.Count(in, []byte("\n")) {
			t.Errorf("%d lines out of %q", lines, in)
		}
	})
}
