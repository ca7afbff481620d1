package main

import (
	"slices"
	"testing"
)

func TestRedactArgs(t *testing.T) {
	check := func(args, want []string) {
		t.Helper()
		if got := redactArgs(args); !slices.Equal(got, want) {
			t.Errorf("redactArgs(%q) = %q, want %q", args, got, want)
		}
	}
	same := func(args ...string) { t.Helper(); check(args, args) }
	same("vllm", "bench", "serve", "--max-tokens", "100", "--random-input-tokens=5", "--tokenizer", "gpt2", "--url",
		"http://h:1/v1?n=2")
	check([]string{"--api-key", "s3"}, []string{"--api-key", redacted})
	check([]string{"--api-key=s3", "--openai_api_key=s3"},
		[]string{"--api-key=" + redacted, "--openai_api_key=" + redacted})
	check([]string{"HF_TOKEN=s3", "x"}, []string{"HF_TOKEN=" + redacted, "x"})
	check([]string{"--header", "Authorization: Bearer s3"}, []string{"--header", "Authorization: " + redacted})
	check([]string{"sh", "-c", "true --api-key s3 && export TOKEN=s3"},
		[]string{"sh", "-c", "true --api-key " + redacted + " && export TOKEN=" + redacted})
	check([]string{"http://me:s3@h/?a=1", "https://h/x?token=s3&b=2"}, []string{"http://" + redacted + "@h/?a=1",
		"https://h/x?token=" + redacted + "&b=2"})
}
