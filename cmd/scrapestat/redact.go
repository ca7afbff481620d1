package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/scrapestat/scrapestat/metric"
)

const redacted = "REDACTED"

// secretWord finds names of things that are kept secret, at the end of a flag
// or variable: --api-key, HF_TOKEN=, but not --max-tokens or --tokenizer.
const secretWord = `(?i)[\w-]*(api[-_]?key|secret|token|password|passwd|credentials?|authorization|auth)`

var (
	secretFlag  = regexp.MustCompile(`^` + secretWord + `$`)
	secretValue = regexp.MustCompile(`(` + secretWord + `["']?[=:\s]\s*)((?:(?i:bearer|basic)\s+)?[^\s"'&]+)`)
	userinfo    = regexp.MustCompile(`(://)[^/?#\s"'@]*@`)
)

// redactedCommand is the command line of a collection as it is kept: targets in
// their public form, and values that look like secrets replaced. args are the
// flags of collect and its targets; command is the load generator.
func redactedCommand(args []string, targets []metric.Target, command []string) []string {
	out := append([]string{"scrapestat", "collect"}, redactArgs(args)...)
	for _, p := range targets {
		if p.Name != "" {
			p.URL = p.Name + "=" + p.URL
		}
		out = append(out, p.URL)
	}
	if len(command) > 0 {
		out = append(append(out, "--"), redactArgs(command)...)
	}
	return out
}

// redactArgs hides what looks like a secret in words of a command line: the word
// after --api-key, the value in --api-key=…, KEY=… and --header "Authorization: …",
// and the userinfo of URLs.
func redactArgs(args []string) []string {
	out := slices.Clone(args)
	for i, a := range out {
		if i > 0 && strings.HasPrefix(args[i-1], "-") && secretFlag.MatchString(args[i-1]) && !strings.HasPrefix(a, "-") {
			out[i] = redacted
			continue
		}
		a = userinfo.ReplaceAllString(a, "${1}"+redacted+"@")
		out[i] = secretValue.ReplaceAllString(a, "${1}"+redacted)
	}
	return out
}
