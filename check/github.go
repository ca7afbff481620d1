package check

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/scrapestat/scrapestat/internal/texttab"
)

// GitHub shows so many annotations of a level in a step, and cuts longer ones.
const (
	maxAnnotations = 10
	maxAnnotation  = 500 // columns
)

var (
	escapeData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// WriteGitHub writes the verdicts as workflow commands of GitHub, which stand beside the code: an error for each number
// that does not keep its limit, a warning for each that nothing tells of, and the verdict as a notice. file is that of
// the expressions that have a line, "" for none.
func (r *Result) WriteGitHub(w io.Writer, file string) error {
	var b bytes.Buffer
	for _, level := range []struct {
		name    string
		verdict Verdict
	}{{"error", Fail}, {"warning", NoData}} {
		var lines []string
		for i := range r.Answers {
			a := &r.Answers[i]
			for j := range a.Outcomes {
				if a.Outcomes[j].Verdict == level.verdict {
					lines = append(lines, a.annotation(level.name, &a.Outcomes[j], file))
				}
			}
		}
		for i, line := range lines {
			if left := len(lines) - i; i == maxAnnotations-1 && left > 1 {
				line = fmt.Sprintf("::%s title=scrapestat::and %d more in the step summary", level.name, left)
			} else if i >= maxAnnotations {
				break
			}
			b.WriteString(line + "\n")
		}
	}
	fmt.Fprintf(&b, "::notice title=scrapestat::%s\n", escapeData.Replace(r.counts()))
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write annotations: %w", err)
	}
	return nil
}

// annotation is the command for one number.
func (a *Check) annotation(level string, o *Outcome, file string) string {
	title := "title=" + escapeProperty.Replace(texttab.Truncate(a.Name, 100))
	if file != "" && a.Line > 0 {
		title += fmt.Sprintf(",file=%s,line=%d", escapeProperty.Replace(file), a.Line)
	}
	text := a.Name
	if where := o.where(); where != "" {
		text += " of " + where
	}
	if o.Why == "" {
		text += " is " + o.value()
	}
	if limit := a.limit(o); limit != "" {
		text += ", limit " + limit
	}
	if remark := o.remark(); remark != "" {
		text += " (" + remark + ")"
	}
	return "::" + level + " " + title + "::" + escapeData.Replace(texttab.Truncate(text, maxAnnotation))
}
