package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The ways to count tokens, as Rules.Tokenizer takes them and Request.Source names them. The first three are what the
// source counted, the others count the text: a model's own tokenizer is not here.
const (
	TokensUsage  = "usage"     // the server's usage.completion_tokens
	TokensIDs    = "token_ids" // length of a list of token ids
	TokensChunks = "chunks"    // chunks with content
	TokensChars  = "chars"     // Unicode characters
	TokensWords  = "words"     // runs of what is no white space
)

// Tokenizers are the values of Rules.Tokenizer.
var Tokenizers = []string{TokensUsage, TokensIDs, TokensChunks, TokensChars, TokensWords}

func checkTokenizer(name string) error {
	if name == "" || slices.Contains(Tokenizers, name) {
		return nil
	}
	return fmt.Errorf("count tokens: unknown tokenizer %q (known: %s). A model's own tokenizer.json is not read: let "+
		"the server count instead (usage; requests proxy --force-usage, or stream_options.include_usage), or give osl in "+
		"the lines of requests record", name, strings.Join(Tokenizers, ", "))
}

// countText counts tokens of a text, -1 when the tokenizer counts no texts.
func countText(tokenizer, text string) int {
	switch tokenizer {
	case TokensChars:
		return utf8.RuneCountInString(text)
	case TokensWords:
		return len(strings.Fields(text))
	}
	return -1
}

// output is the answer to a request as its complete event holds it.
type output struct {
	output, reasoning texts
	has               bool // there was an answer, maybe an empty one
	tagged            bool // its lists are the first chunk and all others joined
}

// texts is a string, or a list of chunks: for MLPerf's rules they differ.
type texts struct {
	parts  []string
	isList bool
}

func (t *texts) UnmarshalJSON(data []byte) error {
	*t = texts{}
	if len(data) > 0 && data[0] == '[' {
		t.isList = true
		return json.Unmarshal(data, &t.parts)
	}
	var s *string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if s != nil {
		t.parts = []string{*s}
	}
	return nil
}

func (t texts) join() string { return strings.Join(t.parts, "") }

// parseOutput reads the data of a complete event: a tagged array ["TextModelOutput", output, reasoning], an object
// with these names, a string or a list of chunks. err is non-nil for any other; null is no output.
func parseOutput(data []byte) (o output, err error) {
	data = trimJSON(data)
	if len(data) == 0 || string(data) == "null" {
		return o, nil
	}
	switch data[0] {
	case '{':
		var obj struct{ Output, Reasoning *texts }
		if err := json.Unmarshal(data, &obj); err != nil {
			return o, err
		}
		return makeOutput(obj.Output, obj.Reasoning), nil
	case '[':
		var raw []json.RawMessage
		if err := json.Unmarshal(data, &raw); err != nil {
			return o, err
		}
		if tag := tagOf(raw); tag == "TextModelOutput" {
			return taggedOutput(raw)
		} else if tag != "" && len(raw) > 1 && trimJSON(raw[1])[0] != '"' || tag == "ErrorData" || tag == "PromptData" {
			return o, nil // of another kind
		}
	}
	var t texts
	if err := json.Unmarshal(data, &t); err != nil {
		return o, err
	}
	return makeOutput(&t, nil), nil
}

func makeOutput(out, reasoning *texts) (o output) {
	if out != nil {
		o.output, o.has = *out, true
	}
	if reasoning != nil {
		o.reasoning, o.has = *reasoning, true
	}
	return o
}

func taggedOutput(raw []json.RawMessage) (o output, err error) {
	o.has, o.tagged = true, true
	if len(raw) > 1 {
		err = json.Unmarshal(raw[1], &o.output)
	}
	if len(raw) > 2 && err == nil {
		err = json.Unmarshal(raw[2], &o.reasoning)
	}
	return o, err
}

// tagOf is the tag of a tagged array, "" when its first element is no string.
func tagOf(raw []json.RawMessage) (tag string) {
	if len(raw) == 0 || json.Unmarshal(raw[0], &tag) != nil {
		return ""
	}
	return tag
}

func trimJSON(data []byte) []byte {
	for len(data) > 0 && (data[0] == ' ' || data[0] == '\n' || data[0] == '\t' || data[0] == '\r') {
		data = data[1:]
	}
	return data
}

// afterFirst is the text after the first chunk, by the table of MLPerf's current design or by its rule until April
// 2026. ok is false when there is none.
func (o output) afterFirst(legacy bool) (text string, ok bool) {
	var parts []string
	switch {
	case legacy:
		parts = slices.Clone(o.output.parts)
		if o.reasoning.isList {
			parts = append(parts, o.reasoning.parts...)
		}
		if len(parts) > 0 {
			parts = parts[1:]
		}
	case o.reasoning.join() == "":
		if o.output.isList && len(o.output.parts) > 0 {
			parts = o.output.parts[1:]
		}
	case o.reasoning.isList:
		parts = append(slices.Clone(o.reasoning.parts[1:]), o.output.parts...)
	case o.output.isList:
		parts = o.output.parts
	}
	text = strings.Join(parts, "")
	return text, text != ""
}

// whole is the text whose tokens are the output's length.
func (o output) whole(legacy bool) string {
	r, out := o.reasoning.join(), o.output.join()
	if legacy && r != "" {
		return r + " " + out
	}
	return r + out
}

// chunks is how many chunks the file says there were. Tagged data has the first chunk and all others joined, so that
// only old files without a tag know.
func (o output) chunks(legacy bool) int {
	if !legacy || !o.has || o.tagged {
		return -1
	}
	n := len(o.output.parts)
	if o.reasoning.isList {
		n += len(o.reasoning.parts)
	}
	return n
}

// countOutput sets the tokens of a request from its answer.
func (o output) count(r *Request, tokenizer string, legacy bool) {
	if n := o.chunks(legacy); n >= 0 && r.chunks < n {
		r.chunks = n
	}
	if tokenizer != TokensChars && tokenizer != TokensWords || !o.has {
		return
	}
	r.Output, r.Source = countText(tokenizer, o.whole(legacy)), tokenizer
	r.AfterFirst = -1
	if text, ok := o.afterFirst(legacy); ok {
		r.AfterFirst = countText(tokenizer, text)
	}
}

// promptTokens reads ["PromptData", text, token_ids, ...], or a plain string.
func promptTokens(data []byte, tokenizer string) int {
	data = trimJSON(data)
	if len(data) == 0 {
		return -1
	}
	text := json.RawMessage(data)
	if data[0] == '[' {
		var raw []json.RawMessage
		if json.Unmarshal(data, &raw) != nil || tagOf(raw) != "PromptData" || len(raw) < 2 {
			return -1
		}
		text = raw[1]
		var ids []json.Number
		if len(raw) > 2 && json.Unmarshal(raw[2], &ids) == nil && len(ids) > 0 && (tokenizer == "" ||
			tokenizer == TokensIDs) {
			return len(ids)
		}
	}
	var s string
	if json.Unmarshal(text, &s) != nil || s == "" {
		return -1
	}
	return countText(tokenizer, s)
}

// errorType reads ["ErrorData", type, message], {"error_type": ...} or a string.
func errorType(data []byte) string {
	data = trimJSON(data)
	if len(data) == 0 {
		return ""
	}
	var s string
	switch data[0] {
	case '"':
		_ = json.Unmarshal(data, &s) // what is no string leaves "", an error without a type
	case '{':
		var o struct {
			Type string `json:"error_type"`
		}
		_ = json.Unmarshal(data, &o) // as above
		s = o.Type
	case '[':
		var raw []json.RawMessage
		if json.Unmarshal(data, &raw) == nil && tagOf(raw) == "ErrorData" && len(raw) > 1 {
			_ = json.Unmarshal(raw[1], &s) // as above
		}
	}
	return cut(s)
}
