package export_test

import "github.com/scrapestat/scrapestat/internal/testkit/fakerun"

const (
	second = fakerun.Second
	origin = fakerun.Origin
)

type fakeRun = fakerun.Run

func newFake(urls ...string) *fakeRun { return fakerun.New(urls...) }
