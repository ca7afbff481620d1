package check

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// The JUnit form that CI systems read: a failure for a limit that was not kept, an error for what could not be told.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes a suite of the name of the run.
func (r *Result) WriteJUnit(w io.Writer, run string) error {
	suite := junitSuite{Name: plain(run)}
	for i := range r.Answers {
		a := &r.Answers[i]
		c := junitCase{Class: "scrapestat.check", Name: plain(a.Name)}
		var lines []string
		shown := a.shown()
		for j := range shown {
			o := &shown[j]
			lines = append(lines, plain(strings.Join(strings.Fields(fmt.Sprint(o.Verdict, " ", o.value(), " ", a.limit(o), " ",
				o.margin100(), " ", o.where(), " ", o.remark())), " ")))
		}
		text := strings.Join(lines, "\n")
		first, _, _ := strings.Cut(text, "\n")
		switch a.Verdict {
		case Fail:
			c.Failure = &junitMessage{first, "limit", text}
			suite.Failures++
		case NoData:
			if first == "" {
				first = string(NoData)
			}
			c.Error = &junitMessage{first, "no data", text}
			suite.Errors++
		default:
			c.Out = text
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Tests: suite.Tests, Failures: suite.Failures, Errors: suite.Errors,
		Suites: []junitSuite{suite}}); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// plain leaves out what XML cannot hold.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' && r != '\t' && r != '\n' {
			return '\uFFFD'
		}
		return r
	}, s)
}
