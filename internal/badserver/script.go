package badserver

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is what an answer is at all.
type Kind int

// The kinds. HTTP is an answer with a head; of Raw only the body is sent; the others send nothing.
const (
	HTTP Kind = iota
	Raw
	Hang
	Reset
	Close
)

// Answer is one answer of a script. The zero value is an empty 200.
type Answer struct {
	Kind      Kind
	Status    int // 0 is 200
	Type      string
	Untyped   bool // no Content-Type is sent
	Header    []string
	Body      []byte
	Bomb      int64 // the body is so many zeros, gzipped
	Length    int64 // Content-Length to claim; 0 is the true one
	Chunked   bool
	Unbounded bool // neither a length nor chunks
	Cut       int  // the connection ends after so many bytes of the body; 0 is not at all
	Tail      string
	Delay     time.Duration
	Drip      time.Duration
	Path      string // "" is any
	Times     int    // 0 is 1

	lines int // sample lines of the body before it was gzipped
}

// Script chooses the answer to the n-th request, counting from 0. A request for another path than that of its answer
// does not count: the next one asks for the same n.
type Script func(n int) Answer

// Steps is a script that gives one answer after the other, and the last one for
// ever, or begins again when loop is set. It needs one answer at least.
func Steps(loop bool, answers ...Answer) Script {
	var all []Answer
	for _, a := range answers {
		for range max(1, a.Times) {
			all = append(all, a)
		}
	}
	return func(n int) Answer {
		if loop {
			return all[n%len(all)]
		}
		return all[min(n, len(all)-1)]
	}
}

//go:embed cases
var cases embed.FS

// Case returns the script of a case of the fault catalogue, such as "T06". The scripts are files of the folder cases.
func Case(id string) (Script, error) {
	text, err := cases.ReadFile("cases/" + id + ".txt")
	if err != nil {
		return nil, fmt.Errorf("find case %q: %w", id, err)
	}
	s, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", id, err)
	}
	return s, nil
}

// maxScriptBody bounds what fill may make, so that a slip of the pen does not take the machine.
const maxScriptBody = 128 << 20

// Parse reads a script; see the package comment.
func Parse(text string) (Script, error) {
	var answers []Answer
	loop := false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
			continue
		case line == "loop" && len(answers) == 0:
			loop = true
			continue
		}
		a, err := parseAnswer(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		answers = append(answers, a)
	}
	if len(answers) == 0 {
		return nil, errors.New("script has no answer")
	}
	return Steps(loop, answers...), nil
}

func parseAnswer(line string) (Answer, error) {
	a := Answer{Type: "text/plain; version=0.0.4; charset=utf-8"}
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "raw":
		a.Kind = Raw
	case "hang":
		a.Kind = Hang
	case "reset":
		a.Kind = Reset
	case "close":
		a.Kind = Close
	default:
		status, err := strconv.Atoi(word)
		if err != nil {
			return a, fmt.Errorf("%q is neither a status nor raw, hang, reset or close", word)
		}
		a.Status = status
	}
	zip := false
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		key, value, left, err := nextWord(rest)
		if err != nil {
			return a, err
		}
		rest = left
		if key == "gzip" || key == "gzipped" {
			zip = true
			if key == "gzip" {
				a.Header = append(a.Header, "Content-Encoding: gzip")
			}
			continue
		}
		if err := a.set(key, value); err != nil {
			return a, fmt.Errorf("%s: %w", key, err)
		}
	}
	a.lines = sampleLines(a.Body)
	if zip {
		a.Body = Gzip(a.Body)
	}
	return a, nil
}

// nextWord cuts key, key=value or key="quoted value" off s.
func nextWord(s string) (key, value, rest string, err error) {
	end := strings.IndexAny(s, " =")
	if end < 0 {
		return s, "", "", nil
	}
	key, rest = s[:end], s[end:]
	if rest[0] == ' ' {
		return key, "", rest, nil
	}
	rest = rest[1:]
	quoteAt := strings.IndexByte(rest, '"')
	space := strings.IndexByte(rest, ' ')
	if quoteAt < 0 || space >= 0 && space < quoteAt {
		value, rest, _ = strings.Cut(rest, " ")
		return key, value, rest, nil
	}
	quoted, err := strconv.QuotedPrefix(rest[quoteAt:])
	if err != nil {
		return key, "", "", fmt.Errorf("%s: string is not closed", key)
	}
	text, err := strconv.Unquote(quoted)
	return key, rest[:quoteAt] + text, rest[quoteAt+len(quoted):], err
}

func (a *Answer) set(key, value string) (err error) {
	switch key {
	case "body":
		a.Body = append(a.Body, value...)
	case "fill", "count":
		return a.fill(value, key == "count")
	case "bomb":
		a.Bomb, err = strconv.ParseInt(value, 10, 64)
		a.Header = append(a.Header, "Content-Encoding: gzip")
		a.Unbounded = true
	case "type":
		a.Type, a.Untyped = value, value == ""
	case "header":
		a.Header = append(a.Header, value)
	case "length":
		a.Length, err = strconv.ParseInt(value, 10, 64)
	case "chunked":
		a.Chunked = true
	case "nolength":
		a.Unbounded = true
	case "cut":
		a.Cut, err = strconv.Atoi(value)
	case "tail":
		a.Tail = value
	case "delay":
		a.Delay, err = time.ParseDuration(value)
	case "drip":
		a.Drip, err = time.ParseDuration(value)
	case "path":
		a.Path = value
	case "n":
		a.Times, err = strconv.Atoi(value)
	default:
		return errors.New("unknown word")
	}
	return err
}

// fill appends a text some times; with numbered each # in it becomes its number.
func (a *Answer) fill(value string, numbered bool) error {
	count, text, ok := strings.Cut(value, ":")
	n, err := strconv.Atoi(count)
	if err != nil || !ok || n < 0 {
		return fmt.Errorf("%q is not N:\"text\"", value)
	}
	if n*len(text) > maxScriptBody {
		return fmt.Errorf("makes more than %d bytes", maxScriptBody)
	}
	if numbered {
		for i := range n {
			a.Body = append(a.Body, strings.ReplaceAll(text, "#", strconv.Itoa(i))...)
		}
		return nil
	}
	a.Body = append(a.Body, bytes.Repeat([]byte(text), n)...)
	return nil
}

// Gzip compresses b.
func Gzip(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	// A buffer takes everything.
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

// sampleLines counts the lines of a text that are neither blank nor comments,
// in a way of its own: the ledger is to be an independent witness.
func sampleLines(body []byte) int {
	n := 0
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		if line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff"))); len(line) > 0 && line[0] != '#' {
			n++
		}
	}
	return n
}
