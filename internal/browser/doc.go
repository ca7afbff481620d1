// Package browser tests the pages that scrapestat makes in a real Chromium,
// driven by its DevTools protocol over a pipe. It is a module of its own, without
// any dependency, so that go test ./... of the program needs no browser. It holds
// tests only:
//
//	SCRAPESTAT_SHOTS=/tmp/shots go test ./...
//
// keeps the pictures of what was seen. CHROMIUM names the browser, else it is
// looked for as chromium, chromium-browser and google-chrome. A machine without
// one fails the tests: they never skip.
package browser
