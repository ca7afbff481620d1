package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A page says addresses and times as a reader has them; here they become ports of
// this machine and a second.
var (
	docAddress = regexp.MustCompile(`(?:\b[a-z][a-z0-9.-]*|\b\d+\.\d+\.\d+\.\d+):\d{2,5}\b|https?://[a-z0-9-]+\.example\b`)
	docPort    = regexp.MustCompile(`(--(?:listen|port)[ =])(\d+)(\s|$)`)
	docListen  = regexp.MustCompile(`--(?:grpc-)?(?:listen|proxy)[ =]([^\s=]+)`)
	docCollect = regexp.MustCompile(`(?:\bscrapestat|go run \./cmd/scrapestat) collect\b`)
	docDemo    = regexp.MustCompile(`(?:\bscrapestat|go run \./cmd/scrapestat) demo\b`)
	docAnalyse = regexp.MustCompile(`\bscrapestat (?:export|show|report|check|compare)\b`)
	docOffset  = regexp.MustCompile(`--(?:warmup|cooldown|from|to|slice-duration)[ =](\d\w*)`)
	docOut     = regexp.MustCompile(`(?:\s-o|\s--out|\s--record|>)[ =]*([\w./-]+)`)
	docWord    = regexp.MustCompile(`[\w.-]+`)
)

// shortTimes are those of a recording in a test.
var shortTimes = []struct{ flag, value string }{{"duration", "1s"}, {"warmup", "200ms"}, {"cooldown", "100ms"},
	{"interval", "100ms"},
	{"settle", "100ms"}, {"slice-duration", "250ms"}}

// logicalLines splits a script into lines as a reader sees them: joined where one
// ends in a backslash or within quotes.
func logicalLines(script string) []string {
	var out []string
	open := ""
	for line := range strings.SplitSeq(strings.TrimSuffix(script, "\n"), "\n") {
		open += line
		if strings.HasSuffix(line, `\`) || strings.Count(open, `'`)%2 == 1 || strings.Count(open, `"`)%2 == 1 &&
			!strings.Contains(open, `'`) {
			open += "\n"
			continue
		}
		out = append(out, open)
		open = ""
	}
	if open != "" {
		out = append(out, open)
	}
	return out
}

// normalAddress gives the same address one spelling.
func normalAddress(a string) string {
	if !strings.Contains(a, ":") {
		a = "127.0.0.1:" + a
	}
	return strings.Replace(a, "localhost:", "127.0.0.1:", 1)
}

// localise puts the addresses of this machine into a script.
func localise(script string, resolve func(address string) (string, error)) (string, error) {
	var failed error
	found := func(address string) string {
		a, err := resolve(address)
		if err != nil && failed == nil {
			failed = err
		}
		return a
	}
	script = docPort.ReplaceAllStringFunc(script, func(s string) string {
		m := docPort.FindStringSubmatch(s)
		a := found(normalAddress(m[2]))
		return m[1] + "\x00" + a[strings.LastIndexByte(a, ':')+1:] + m[3]
	})
	script = docAddress.ReplaceAllStringFunc(script, func(s string) string {
		if _, host, ok := strings.Cut(s, "://"); ok {
			return "http://" + found(host)
		}
		return found(normalAddress(s))
	})
	return strings.ReplaceAll(script, "\x00", ""), failed
}

// shorten makes a recording one of a second, and what is cut out of such a
// recording later a hundredth. live holds the names of the runs that the page
// recorded.
func shorten(line string, live []string) string {
	switch {
	case docDemo.MatchString(line):
		return docDemo.ReplaceAllString(line, "$0 --duration 1s --warmup 200ms")
	case docCollect.MatchString(line):
		own, command, wraps := strings.Cut(line, " -- ")
		add := ""
		for _, s := range shortTimes {
			flag := regexp.MustCompile(`--` + s.flag + `([ =])[^\s]+`)
			if flag.MatchString(own) {
				own = flag.ReplaceAllString(own, "--"+s.flag+"${1}"+s.value)
			} else if s.flag == "interval" || s.flag == "settle" || s.flag == "duration" && !wraps && !isBackground(own) {
				add += " --" + s.flag + " " + s.value
			}
		}
		own = docCollect.ReplaceAllString(own, "$0"+add)
		if wraps {
			return own + " -- " + command
		}
		return own
	case docAnalyse.MatchString(line) && slices.ContainsFunc(docWord.FindAllString(line, -1),
		func(w string) bool { return slices.Contains(live, w) }):
		return docOffset.ReplaceAllStringFunc(line, func(s string) string {
			value := docOffset.FindStringSubmatch(s)[1]
			d, err := time.ParseDuration(value)
			if err != nil {
				return s
			}
			return strings.TrimSuffix(s, value) + (d / 100).String()
		})
	}
	return line
}

// withoutComment cuts what follows a # that begins a word.
func withoutComment(line string) string {
	if i := strings.Index(line, " #"); i >= 0 && strings.Count(line[:i], `'`)%2 == 0 &&
		strings.Count(line[:i], `"`)%2 == 0 {
		line = line[:i]
	}
	return strings.TrimRight(line, " \t\n")
}

func isBackground(line string) bool {
	line = withoutComment(line)
	return strings.HasSuffix(line, " &") && !strings.HasSuffix(line, "&&")
}

// waitForServers has a script go on only when what it left in the background
// listens, and ends with it: a server must end orderly.
func waitForServers(lines []string) string {
	var b strings.Builder
	any := false
	for _, line := range lines {
		b.WriteString(line + "\n")
		if !isBackground(line) {
			continue
		}
		any = true
		for _, m := range docListen.FindAllStringSubmatch(line, -1) {
			fmt.Fprintf(&b, "standin listening %s\n", normalAddress(m[1]))
		}
	}
	if any {
		b.WriteString("for job in $(jobs -p); do kill $job 2>/dev/null || true; wait $job; done\n")
	}
	return b.String()
}

// TestDocScript: what becomes of the commands of a page.
func TestDocScript(t *testing.T) {
	resolve := func(a string) (string, error) {
		if a == "nobody:1234" {
			return "", fmt.Errorf("no server")
		}
		return "127.0.0.1:5" + a[strings.LastIndexByte(a, ':')+1:], nil
	}
	check := func(script, want string) {
		t.Helper()
		var out []string
		for _, line := range logicalLines(script) {
			line, err := localise(line, resolve)
			if err != nil {
				t.Errorf("%q: %v", script, err)
			}
			out = append(out, shorten(line, []string{"live"}))
		}
		if got := waitForServers(out); got != want+"\n" {
			t.Errorf("%q:\ngot  %q\nwant %q", script, got, want)
		}
	}
	check("scrapestat doctor localhost:80 a=http://10.0.0.3:81/x # why?",
		"scrapestat doctor 127.0.0.1:580 a=http://127.0.0.1:581/x # why?")
	check("scrapestat collect localhost:80 --warmup 30s -o r -- vllm --port 90 --warmup 5s",
		"scrapestat collect --interval 100ms --settle 100ms 127.0.0.1:580 --warmup 200ms -o r -- vllm --port 590 --warmup 5s")
	check("scrapestat collect h:80 \\\n  --interval 1s",
		"scrapestat collect --duration 1s --settle 100ms 127.0.0.1:580 \\\n  --interval 100ms")
	check("scrapestat collect h:80 --listen 94 &\ncurl http://127.0.0.1:94/",
		"scrapestat collect --interval 100ms --settle 100ms 127.0.0.1:580 --listen 594 &\n"+
			"standin listening 127.0.0.1:594\ncurl http://127.0.0.1:594/\nfor job in $(jobs -p); do kill $job 2>/dev/null "+
			"|| true; wait $job; done")
	check("go run ./cmd/scrapestat demo --requests",
		"go run ./cmd/scrapestat demo --duration 1s --warmup 200ms --requests")
	check("scrapestat export live --warmup 60s --slice-duration 10s",
		"scrapestat export live --warmup 600ms --slice-duration 100ms")
	check("scrapestat export stored --warmup 60s", "scrapestat export stored --warmup 60s")
	check("scrapestat import prometheus http://p:90 --start 2026-11-01T10:00:00Z",
		"scrapestat import prometheus http://127.0.0.1:590 --start 2026-11-01T10:00:00Z")
	check(`check --assert 'vllm:time_to_first_token_seconds p99 < 450ms'`,
		`check --assert 'vllm:time_to_first_token_seconds p99 < 450ms'`)
	if _, err := localise("curl nobody:1234", resolve); err == nil {
		t.Error("an address of nobody is not refused")
	}
}
