package openmetrics

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/scrapestat/scrapestat/internal/timeline"
	"github.com/scrapestat/scrapestat/metric"
)

// Options adjusts an import. The zero value reads samples that have timestamps.
type Options struct {
	// Address is the URL of the target of samples without job and instance.
	Address string
	// TargetLabels identify a target; nil is job and instance.
	TargetLabels []string
	// AtNS is the time of samples without a timestamp; 0 refuses them.
	AtNS int64
	// Step is the least time between two polls of a target; 0 keeps all.
	Step time.Duration
	// Keep and Drop choose families, as scrape.Options has it.
	Keep, Drop *regexp.Regexp
	// TypeOf is what a name is known to be that has no TYPE line; nil knows none.
	TypeOf func(name string) (metric.Type, bool)
	Limits timeline.Limits
	// LineLength is the longest line in bytes; 0 is 1 MiB.
	LineLength int
	// Progress is told now and then what was read; nil is not.
	Progress func(lines, samples int64)
}

// Stats is what became of the file.
type Stats struct {
	timeline.Stats
	Lines   int64         // sample lines
	Refused []metric.Drop // lines of which not even the series is known, by reason
}

// Import reads a dump to its end and gives its polls to sink. When reading breaks off, what was read is given to sink
// all the same and the error says where it broke.
func Import(ctx context.Context, r io.Reader, o Options, sink timeline.Sink) (Stats, error) {
	o.LineLength = cmp.Or(max(o.LineLength, 0), 1<<20)
	i := &reader{o: o, t: timeline.New(timeline.Options{Source: "openmetrics", TargetLabels: o.TargetLabels,
		Address: o.Address,
		Step:    o.Step, Keep: o.Keep, Drop: o.Drop, TypeOf: o.TypeOf, Limits: o.Limits}, sink)}
	readErr := i.read(ctx, r)
	err := i.t.Flush(ctx)
	i.stats.Stats = i.t.Stats()
	return i.stats, errors.Join(readErr, err)
}

type reader struct {
	o      Options
	t      *timeline.Timeline
	stats  Stats
	number int64 // of the line
	ended  bool  // # EOF was read
	labels []metric.Label
}

func (i *reader) read(ctx context.Context, r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(long)+len(line) <= i.o.LineLength {
				long = append(long, line...)
				continue
			}
			i.number++
			i.stats.Lines++
			i.refuse("line_length", long)
			long = long[:0]
			if err := skipLine(in); err != nil {
				return i.broken(err)
			}
			continue
		case len(long) > 0:
			long = append(long, line...)
			line = long
		}
		if err != nil && err != io.EOF {
			return i.broken(err) // what came of the last line may be half of it
		}
		if len(line) > 0 {
			i.number++
			if err := i.line(bytes.TrimRight(line, "\r\n")); err != nil {
				return i.broken(err)
			}
		}
		long = long[:0]
		if err != nil {
			return i.broken(err)
		}
		if i.number%4096 == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if i.o.Progress != nil {
				i.o.Progress(i.stats.Lines, int64(i.t.Held()))
			}
		}
	}
}

// broken says where reading ended; nil at the end of the file.
func (i *reader) broken(err error) error {
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	if errors.Is(err, timeline.ErrFull) {
		return fmt.Errorf("read dump: line %d: %w: raise --max-samples or split the file", i.number, err)
	}
	return fmt.Errorf("read dump: after line %d: %w", i.number, err)
}

func skipLine(in *bufio.Reader) error {
	for {
		if _, err := in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// line takes one line. Its error ends reading.
func (i *reader) line(line []byte) error {
	if i.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	text := bytes.TrimLeft(line, " \t")
	switch {
	case len(text) == 0:
		return nil
	case text[0] == '#':
		i.comment(string(text))
		return nil
	}
	i.stats.Lines++
	if i.ended {
		i.refuse("after_eof", line)
		return nil
	}
	s, reason := ParseSample(text, i.labels[:0])
	i.labels = s.Labels
	if reason == "parse" || reason == "duplicate_label" {
		i.refuse(reason, line)
		return nil
	}
	series := i.t.Series(s.Name, s.Labels)
	switch {
	case reason != "":
		series.Refuse(reason)
		return nil
	case !s.Stamped && i.o.AtNS == 0:
		series.Refuse("no_timestamp")
		return nil
	case !s.Stamped:
		s.AtNS = i.o.AtNS
	}
	return series.Add(s.AtNS, s.Value)
}

// comment reads a metadata line.
func (i *reader) comment(text string) {
	if strings.TrimRight(text, " \t") == "# EOF" {
		i.ended = true
		return
	}
	words := strings.SplitN(text, " ", 4)
	if len(words) < 3 || words[0] != "#" {
		return
	}
	name, rest := strings.Trim(words[2], `"`), ""
	if len(words) == 4 {
		rest = words[3]
	}
	switch words[1] {
	case "TYPE":
		if typ, ok := metric.ParseType(strings.TrimSpace(rest)); ok {
			i.t.DescribeMore(name, timeline.Meta{Type: typ})
		}
	case "HELP":
		i.t.DescribeMore(name, timeline.Meta{Help: helpText.Replace(rest)})
	case "UNIT":
		i.t.DescribeMore(name, timeline.Meta{Unit: strings.TrimSpace(rest)})
	}
}

var helpText = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`)

// refuse counts a line whose series is not known.
func (i *reader) refuse(reason string, line []byte) {
	i.stats.Refused = metric.AddDrop(i.stats.Refused, reason, 1, func() string {
		return fmt.Sprintf("line %d: %.120q", i.number, line[:min(len(line), 120)])
	})
}
