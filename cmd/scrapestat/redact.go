package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/scrapestat/scrapestat/metric"
)

const redacted = "REDACTED"

// The forms of --store-command.
const (
	storeFull     = "full"
	storeRedacted = "redacted"
	storeNone     = "none"
)

var (
	// secretWord is in the names of things that are kept secret; plainWord is taken out of a name before, and countWord
	// of one whose value is a number: --tokenizer, --max-tokens 100.
	secretWord = lazily(`key|token|secret|passw|passphrase|passcode|pass$|pass[-_.]|pwd|auth|cookie|` +
		`credential|creds|sig|jwt|bearer|session|private`)
	plainWord = lazily(`tokeni[sz]\w*|authors?$|sigma|signal|signific\w*|(de|as)sign\w*|keywords?|monkey|` +
		`(sort|group|join|partition)[-_]?keys?|key[-_](value|cache)`)
	countWord = lazily(`tokens|token[-_]|sessions?`)
	// aNumber is one, maybe with the next name of a list behind it, or what a shell computes.
	aNumber = lazily(`^([\d.,]{1,9}[kKmM]?([}\])]*|[,;&]\s*["']?[\w.-]+["']?\s*[=:].*)|` +
		`\$\(\([\w*+/ -]+\)\);?|\$\{?\w+\}?;?)$`)
	// keyFile is the end of the names whose value is the path of a secret.
	keyFile  = lazily(`([-_.]|tls[-_]?key|ssl[-_]?key)(file|path)$|(tls|ssl)[-_]key$`)
	bareWord = lazily(`(?i)^(password|passwd|secret|token|api[-_]?key|bearer)$`)

	// naming is a name and what stands between it and its value, which is one of the next.
	naming   = lazily(`([\w.-]+)(\\*["']?\]?\s*(?::=|=>|[=:])\s*|\s+)`)
	inQuotes = lazily(`^(?:"(?:\\.|[^"\\])*"|'[^']*'|\\+"[^"]*")(?:[^\s"'&,})\]]+|"[^"]*"|'[^']*')*`)
	unquoted = lazily(`^(?:(?i:bearer|basic|token|digest)\s+)?[^\s"'&]*(?:[^\s"'&]|"[^"]*"|'[^']*')*`)
	header   = lazily(`^[^"'\r\n]*`) // cookies and credentials have blanks

	userinfo = lazily(`(://)[^/\s"'<>]*@`)
	userPair = lazily(`((?:^|\s)(?:-[uUa]|--(?:proxy-)?user(?:pwd|name)?|--login|--basic)(?:\s+|=)?["']?)` +
		`[^\s"':/]+:[^\s"']+`)
	hostPair = lazily(`[^\s/"'@:=,]+:[^\s/"'@]+(@[\w.-]+)`)
	scheme   = lazily(`(?i)\b(bearer\s+|basic\s+)[\w+/=.~-]{6,}`)
	prefixed = lazily(
		`\b(sk|pk|rk|csk|xai|tskey|nvapi|glpat|pypi|tvly|pplx|xapp|xox[a-z])-[\w.+/=-]{6,}|\bkey-[0-9a-f]{32}|` +
			`\b(sk|pk|rk|gh[pousr]|github_pat|gsk|dop_v1|dckr_pat|shpat|lin_api)_[\w.-]{6,}|` +
			`\b(hf|r8|npm|fw|wandb)_[A-Za-z]*\d[\w.-]{4,}|` + // words begin like these
			`\b(AIza|eyJ|AKIA|ASIA|SG\.|ya29\.|hv[sb]\.)[\w.-]{6,}`)
	private = lazily(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY.*`)
	longest = lazily(`(?:sha256:)?[A-Za-z0-9+/_=-]{20,}`)
)

// lazily compiles a pattern when it is first asked for: most commands redact nothing, and compiling these took a tenth
// of a start.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// redactedCommand is the command line of a collection as it is kept: targets in
// their public form, and values that look like secrets replaced, or what store asks
// for. args are the flags of collect and its targets; command is the load generator.
func redactedCommand(store string, args []string, targets []metric.Target, command []string) []string {
	words := redactArgs
	switch store {
	case storeNone:
		return nil
	case storeFull:
		words = slices.Clone[[]string]
	}
	out := append([]string{"scrapestat", "collect"}, words(args)...)
	for _, p := range targets {
		if p.Name != "" {
			p.URL = p.Name + "=" + p.URL
		}
		out = append(out, p.URL)
	}
	if len(command) > 0 {
		out = append(append(out, "--"), words(command)...)
	}
	return out
}

// redactedTags are the tags of a run as they are kept.
func redactedTags(store string, tags map[string]string) map[string]string {
	if store == storeFull || len(tags) == 0 {
		return tags
	}
	out := map[string]string{}
	for k, v := range tags {
		if out[redactText(k)] = redactValue(k, v); k == "git.commit" && commitTag.MatchString(v) {
			out[k] = v
		}
	}
	return out
}

// redactArgs hides what looks like a secret in words of a command line: the values of names that tell of one, however
// they are written, users with passwords, tokens of known forms, and long words that nobody would have chosen.
func redactArgs(args []string) []string {
	out := slices.Clone(args)
	for i, a := range out {
		last := ""
		if i > 0 {
			last = args[i-1]
		}
		flag := strings.HasPrefix(last, "-") || bareWord().MatchString(last)
		switch name, sep, value, ok := cutName(a); {
		case flag && !strings.HasPrefix(a, "-") && !strings.ContainsAny(last, "= :"):
			if out[i] = redactValue(last, a); userPair().MatchString(last + " " + a) {
				out[i] = redacted
			}
		case ok && isSecretName(name, value):
			out[i] = name + sep + redactValue(name, value)
		default:
			out[i] = redactText(a)
		}
	}
	return out
}

// cutName cuts a word of a command line behind a name at its beginning.
func cutName(word string) (name, sep, value string, ok bool) {
	m := naming().FindStringSubmatchIndex(word)
	if m == nil || m[0] != 0 || strings.TrimSpace(word[m[4]:m[5]]) == "" || strings.HasPrefix(word[m[5]:], "//") ||
		isHostPort(word[m[2]:m[3]], word[m[4]:m[5]]) {
		return "", "", "", false
	}
	return word[:m[3]], word[m[4]:m[5]], word[m[5]:], true
}

// isHostPort reports whether a name is a host before its port.
func isHostPort(name, sep string) bool { return sep == ":" && strings.Contains(name, ".") }

// isSecretName reports whether the value of this name is kept secret.
func isSecretName(name, value string) bool {
	name = plainWord().ReplaceAllString(strings.ToLower(name), "")
	if aNumber().MatchString(value) {
		name = countWord().ReplaceAllString(name, "")
	}
	return secretWord().MatchString(name)
}

// redactValue is what is kept of the value of a name: of the path of a key its last element.
func redactValue(name, value string) string {
	switch {
	case !isSecretName(name, value):
		return redactText(value)
	case keyFile().MatchString(strings.ToLower(name)):
		return redactText(filepath.Base(value))
	}
	return redacted
}

// redactText hides secrets within a text.
func redactText(s string) string {
	s = private().ReplaceAllString(s, redacted)
	s = userinfo().ReplaceAllString(s, "${1}"+redacted+"@")
	s = userPair().ReplaceAllString(s, "${1}"+redacted)
	s = hostPair().ReplaceAllStringFunc(s, func(pair string) string {
		at := strings.LastIndexByte(pair, '@')
		if pair[at:] == "@sha256" {
			return pair
		}
		return redacted + pair[at:]
	})
	s = redactNamed(s)
	s = scheme().ReplaceAllString(s, "${1}"+redacted)
	s = prefixed().ReplaceAllString(s, redacted)
	return longest().ReplaceAllStringFunc(s, func(word string) string {
		if isRandom(word) {
			return redacted
		}
		return word
	})
}

// redactNamed hides the values of names that tell of a secret.
func redactNamed(s string) string {
	var b strings.Builder
	for {
		m := naming().FindStringSubmatchIndex(s)
		if m == nil {
			return b.String() + s
		}
		name, sep, rest := s[m[2]:m[3]], s[m[4]:m[5]], s[m[5]:]
		b.WriteString(s[:m[5]])
		s = rest
		blank := strings.TrimSpace(sep) == ""
		if blank && !strings.HasPrefix(name, "-") && !bareWord().MatchString(name) || blank && strings.HasPrefix(rest, "-") ||
			isHostPort(name, sep) {
			continue
		}
		value := inQuotes().FindString(rest)
		if lower := strings.ToLower(name); value == "" && strings.Contains(sep, ":") &&
			(strings.HasSuffix(lower, "cookie") || strings.HasSuffix(lower, "authorization")) {
			value = header().FindString(rest)
		}
		if value == "" {
			value = unquoted().FindString(rest)
		}
		if value == "" || !isSecretName(name, value) {
			continue
		}
		quote := ""
		if strings.ContainsRune(`"'`, rune(value[0])) {
			quote = value[:1]
		}
		b.WriteString(quote + redactValue(name, strings.Trim(value, `"'\`)) + quote)
		s = rest[len(value):]
	}
}

// isRandom reports whether a word looks like a key: in its longest part between
// separators small letters, capitals and digits follow each other without order.
func isRandom(word string) bool {
	if strings.HasPrefix(word, "sha256:") {
		return false
	}
	part := ""
	for _, p := range strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune("+/_=-", r) }) {
		if len(p) > len(part) {
			part = p
		}
	}
	class := func(c byte) int {
		switch {
		case c <= '9':
			return 0
		case c <= 'Z':
			return 1
		}
		return 2
	}
	changes := 0
	for i := 1; i < len(part); i++ {
		if a, b := class(part[i-1]), class(part[i]); a != b && (a != 1 || b != 2) {
			changes++
		}
	}
	return len(part) >= 12 && changes*4 >= len(part)
}
