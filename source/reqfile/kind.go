package reqfile

import (
	"context"
	"errors"
	"time"

	"github.com/scrapestat/scrapestat/metric"
	"github.com/scrapestat/scrapestat/source"
)

// Target is SGLang's request files as targets: sglang-requests:FOLDER.
func Target() source.Kind {
	scheme := SGLang.Name + ":"
	return source.Kind{Name: SGLang.Name, Prefixes: []string{scheme}, Local: true, Interval: 200 * time.Millisecond,
		Usage: "  sglang-requests:PATH what SGLang tells of each request: a folder, a file or a pattern\n",
		Check: func(address string) error {
			if len(address) == len(scheme) || len(address) > 4096 {
				return errors.New("sglang-requests: wants a folder, a file or a pattern")
			}
			return nil
		},
		Show: func(address string) string { return scheme + metric.Clean(address[len(scheme):], 1024) },
		New:  func() source.Opener { return opener{} }}
}

// opener opens targets that are followed files. It has no flags.
type opener struct{}

// Flags implements source.Opener.
func (opener) Flags() []source.Flag { return nil }

// Check implements source.Opener.
func (opener) Check() error { return nil }

// Open implements source.Opener.
func (opener) Open(address string, o source.Options) (source.Source, error) {
	path := address[len(SGLang.Name)+1:]
	feed := o.Feed(metric.ServerSource{Kind: SGLang.Name, Name: metric.Clean(path, 1024),
		ServerClock: SGLang.ServerClock})
	f, err := Follow(SGLang, path, NewReader(SGLang, feed.Record))
	if err != nil {
		return nil, err
	}
	return &target{f: f, feed: feed}, nil
}

// target is a scrape.Source without samples: what it reads are records.
type target struct {
	f      *Follower
	feed   source.Feed
	warned bool
}

// Poll implements scrape.Source.
func (t *target) Poll(ctx context.Context, now func() int64, s *metric.Snapshot) {
	s.SentNS = now()
	if ctx.Err() != nil {
		s.Outcome, s.Err = metric.Cancelled, "the run ended first"
		return
	}
	n, err := t.f.Poll()
	s.FirstByteNS, s.BodyBytes = now(), n
	s.Duration = time.Duration(s.FirstByteNS - s.SentNS)
	t.feed.Counted(t.f.Counts())
	if err != nil {
		s.Outcome, s.Err = metric.Partial, metric.Clean(err.Error(), 300)
	}
	if text := t.f.Warning(); text != "" && !t.warned {
		t.warned = true
		s.Warnings = append(s.Warnings, metric.Warning{Code: "prompts_in_file", Text: text})
	}
}

// Close implements scrape.Source.
func (t *target) Close() error { return nil }
