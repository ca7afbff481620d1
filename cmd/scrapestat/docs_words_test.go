package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// shellCommands splits a script of a page into commands and their words: it knows
// quotes, comments, joined lines and the operators between commands. A file that
// something is redirected to is no word.
func shellCommands(script string) [][]string {
	var out [][]string
	var words []string
	var word strings.Builder
	begun, quote, skip := false, byte(0), false
	endWord := func() {
		if begun && !skip {
			words = append(words, word.String())
		}
		if begun {
			skip = false
		}
		word.Reset()
		begun = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			out = append(out, words)
		}
		words, skip = nil, false
	}
	for i := 0; i < len(script); i++ {
		c := script[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != '\'' && c == '\\' && i+1 < len(script):
			if i++; script[i] != '\n' {
				begun = true
				word.WriteByte(script[i])
			}
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == '#' && !begun:
			if end := strings.IndexByte(script[i:], '\n'); end >= 0 {
				i += end - 1
			} else {
				i = len(script)
			}
		case c == '\n' || c == ';' || c == '|' || c == '&':
			endCommand()
		case c == '>' || c == '<':
			endWord()
			skip = true
		case c == ' ' || c == '\t':
			endWord()
		default:
			begun = true
			word.WriteByte(c)
		}
	}
	endCommand()
	return out
}

// ourWords returns the words after the name of this program, of a command that
// runs it, however it is started.
func ourWords(words []string) ([]string, bool) {
	for len(words) > 0 && strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "-") {
		words = words[1:] // a variable of the environment
	}
	switch {
	case len(words) > 0 && (words[0] == "scrapestat" || strings.HasSuffix(words[0], "/scrapestat")):
		return words[1:], true
	case len(words) > 2 && words[0] == "go" && words[1] == "run" && strings.HasSuffix(words[2], "cmd/scrapestat"):
		return words[3:], true
	}
	return nil, false
}

// checkUsage holds the words of a command line of ours against the commands:
// which there are, their flags, the form of the values, how many arguments.
func checkUsage(words []string) error {
	root := newRootCmd(discard())
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	root.InitDefaultVersionFlag()
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return fmt.Errorf("%s: %w", cmd.CommandPath(), err)
	}
	if cmd == root && cmd.Flags().NArg() > 0 {
		return fmt.Errorf("there is no command %q", cmd.Flags().Arg(0))
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return fmt.Errorf("%s: %w", cmd.CommandPath(), err)
	}
	return nil
}

// allCommands lists the commands of the program.
func allCommands(root *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{root}
	for _, c := range root.Commands() {
		out = append(out, allCommands(c)...)
	}
	return out
}

// TestShellWords: how a script is split.
func TestShellWords(t *testing.T) {
	check := func(script string, want ...[]string) {
		t.Helper()
		if got := shellCommands(script); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%q: got %q, want %q", script, got, want)
		}
	}
	check("a b # c\nd 'e f' \"g h\"", []string{"a", "b"}, []string{"d", "e f", "g h"})
	check("a \\\n  b", []string{"a", "b"})
	check("a | b > c; d && e &", []string{"a"}, []string{"b"}, []string{"d"}, []string{"e"})
	check("a 'x < 1 | 2' ''", []string{"a", "x < 1 | 2", ""})
	check("a b#c\n# all\n", []string{"a", "b#c"})
}

// TestUsage: what no command has is found out.
func TestUsage(t *testing.T) {
	check := func(line string, good bool) {
		t.Helper()
		words, ours := ourWords(shellCommands(line)[0])
		if !ours {
			t.Fatalf("%q is not ours", line)
		}
		if err := checkUsage(words); (err == nil) != good {
			t.Errorf("%q: %v", line, err)
		}
	}
	check("scrapestat collect localhost:8000 --warmup 30s -o run1 -- vllm bench serve --num-prompts 500", true)
	check("X=1 go run ./cmd/scrapestat demo --requests", true)
	check("./scrapestat requests join run1", true)
	check("scrapestat collect localhost:8000 --warm 30s", false)
	check("scrapestat collect localhost:8000 --warmup 30", false)
	check("scrapestat colect localhost:8000", false)
	check("scrapestat requests join", false)
	check("scrapestat requests joni run1", false)
}
