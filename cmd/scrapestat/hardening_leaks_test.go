package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scrapestat/scrapestat/internal/faults"
)

// secretForms are words of a command line that hold the secret %s: first the forms
// that were found to leak, then others.
var secretForms = [][]string{
	{"AWS_SECRET_ACCESS_KEY=%s"}, {"OPENAI_KEY=%s"}, {"--secret-key", "%s"}, {"--access-key", "%s"}, {"-u", "user:%s"},
	{"-H", "Cookie: sid=1; session=%s"}, {`{"api_key":"%s"}`}, {"sk-%s"}, {"hf_%s"}, {"-H", "X-Any: Bearer %s"},
	{"http://h/x?key=%s&sig=1"}, {"http://h/x?a=1&sig=%s"}, {"--api-key", "%s"}, {"--api-key=%s"}, {"HF_TOKEN=%s"},
	{"--header", "Authorization: Bearer %s"}, {"--header=Authorization: Basic %s"}, {"http://me:%s@h/"},
	{"sh", "-c", "x --api-key %s"}, {"sh", "-c", "export TOKEN=%s; x"}, {"sh", "-c", "x --password='%s' y"},
	{`{"a": {"client_secret" : "%s"}}`}, {`--json={"password":"%s"}`}, {"--credentials", "%s"}, {"DB_PASSWD=%s"},
	{"--auth", "user:%s"}, {"-H", "X-Api-Key: %s"}, {"--aws-session-token=%s"}, {"AZURE_SIG=%s"},

	{"sh", "-c", `curl -d "{\"api_key\":\"%s\"}" h`}, {"sh", "-c", `curl -H "Cookie: a=b; c=%s" h`},
	{"sh", "-c", "curl -u me:%s http://h"}, {"--user=me:%s"}, {"-uuser:%s"}, {"--proxy-user", "me:%s"},
	{"postgres://u:p@%s@h/db"}, {"me:%s@h"}, {"password", "%s"}, {"--passphrase=%s"}, {"PGPASS=%s"}, {"MYSQL_PWD=%s"},
	{"ghp_%s"}, {"https://h/%%3Ftoken=%s"}, {"glpat-%s"}, {"xoxb-%s"}, {"eyJ%s.eyJ.x"}, {"AKIA%s"},
	{"--openaiApiKey", "%s"},
	{"accessKey: %s"}, {"{'token': '%s'}"}, {`{"password":"a\"%s"}`}, {"--password=a,b c%s"}, {"--extra", "token=x,%s"},
	{"-----BEGIN EC PRIVATE KEY-----\n%s\n"}, {"X-Amz-Signature=%s"}, {"https://h/?jwt=%s#a"},
	{"AccountName=a;AccountKey=%s"},
	{"key=[\"a\",\"%s\"]"},
}

// formSecret is the secret of a form: a word that only its place tells of.
func formSecret(n int) string { return fmt.Sprintf("zq%02dxvwk", n) }

// filled is a form with a secret in it.
func filled(form []string, secret string) (out []string) {
	for _, word := range form {
		out = append(out, strings.ReplaceAll(strings.ReplaceAll(word, "%s", secret), "%%", "%"))
	}
	return out
}

// disguises are the ways in which a text may hide in a file: as it is, percent-encoded
// and in base64, at each of three offsets.
func disguises(secret string) (out [][]byte) {
	percent := ""
	for _, c := range []byte(secret) {
		percent += fmt.Sprintf("%%%02X", c)
	}
	out = append(out, []byte(secret), []byte(percent), []byte(url.QueryEscape(secret)))
	for offset := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", offset) + secret))
		from := (offset*8 + 5) / 6 // what depends on secret alone
		out = append(out, []byte(text[from:(offset+len(secret))*8/6]))
	}
	return out
}

// TestHardeningLeaks has findings of what must not leak, by the numbers that package
// faults lists.
func TestHardeningLeaks(t *testing.T) {
	t.Parallel()
	t.Run("K12", func(t *testing.T) { t.Parallel(); commandSecrets(t) })
	t.Run("K14", func(t *testing.T) { t.Parallel(); keyPaths(t) })
}

// randomWords are secrets that nothing but their look tells.
var randomWords = []string{"q7Xc2VbN9mK4pLs8Rt1Z", "f3a9c17be402d58e6b1f0a7c", "wJalrXUtn7FEMI-K7MDENG-bPxRfi9CYEX3AM"}

// commandSecrets has every form in COMMAND, and in tags, of a run whose outputs are
// searched in all disguises.
func commandSecrets(t *testing.T) {
	if len(secretForms) != 58 {
		t.Fatalf("%d forms", len(secretForms))
	}
	srv := serveBad(t, goodScript)
	dir := filepath.Join(t.TempDir(), "run")
	args := []string{"collect", srv.Addr, "-o", dir, "--duration", "200ms", "--interval", "50ms", "--settle", "0s",
		"--formats", "json,csv,jsonl,parquet"}
	words := []string{"--", "sh", "-c", ":"}
	var secrets [][]byte
	for i, form := range secretForms {
		secret := formSecret(i)
		secrets = append(secrets, disguises(secret)...)
		words = append(words, filled(form, secret)...)
		if got := strings.Join(redactArgs(filled(form, secret)), " "); strings.Contains(got, secret) || got == "" {
			t.Errorf("%q is kept as %q", form, got)
		}
	}
	for i, secret := range append(randomWords, "tagged0", "tagged1", "sk-tagged2") {
		secrets = append(secrets, disguises(secret)...)
		if i < len(randomWords) {
			words = append(words, secret, "--name", "x-"+secret+".json")
		}
	}
	args = append(args, "--tag", "password=tagged0", "--tag", "note=token: tagged1", "--tag", "sk-tagged2=x", "--tag",
		"gpu=H100")
	// Files go beside the run, to be searched with it; the sides of a comparison are parts of it.
	beside := func(name string) string { return filepath.Join(filepath.Dir(dir), name) }
	past := beside("history.db")
	for _, args := range [][]string{append(args, words...), {"report", dir}, {"export", dir, "--formats", "json,csv"},
		{"show", dir, "--all"}, {"show", dir, "--format", "json"}, {"show", dir, "--format", "csv"},
		{"show", dir, "--format", "markdown"}, {"explain", dir}, {"explain", dir, "--format", "json"},
		{"compare", dir, dir + "@0s..0.1s"}, {"compare", dir, dir + "@0s..0.1s", "--format", "json"},
		{"report", "a=" + dir, "b=" + dir + "@0s..0.1s", "-o", beside("two.html")},
		{"check", dir, "--assert", "good total >= 0", "--junit", beside("check.xml")},
		{"check", dir, "--assert", "good total >= 0", "--format", "json"}, {"catalog", "unknown", dir},
		{"history", "add", "-f", past, dir}, {"history", "list", "-f", past}, {"history", "show", "-f", past},
		{"history", "show", "-f", past, "--format", "json"}, {"history", "export", "-f", past, "-o", beside("h.parquet")},
		{"repair", dir, "-o", beside("mended")}} {
		var said bytes.Buffer
		if code := run(t.Context(), args, stdio{strings.NewReader(""), &said, &said}); code != exitDone {
			t.Fatalf("%q: exit %d: %s", args[:min(3, len(args))], code, said.String())
		}
		find(t, args[0], said.Bytes(), secrets)
	}
	files := 0
	if err := faults.Texts(t.Context(), filepath.Dir(dir), func(where string, data []byte) {
		files++
		find(t, where, data, secrets)
	}); err != nil || files < 16 {
		t.Errorf("%d files, %v", files, err)
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil || !bytes.Contains(manifest, []byte("H100")) || !bytes.Contains(manifest, []byte(redacted)) {
		t.Errorf("what is no secret is gone: %v %s", err, manifest)
	}
}

func find(t *testing.T, where string, data []byte, secrets [][]byte) {
	t.Helper()
	for _, s := range secrets {
		if i := bytes.Index(data, s); i >= 0 {
			t.Errorf("%s shows %s: ...%q", where, s, data[max(0, i-60):min(len(data), i+40)])
		}
	}
}

// keyPaths: of the path of a key its last element is kept, in both forms of a flag.
func keyPaths(t *testing.T) {
	got := strings.Join(redactArgs([]string{"--tls-key=/secret/place/k.pem", "--bearer-token-file", "/secret/place/tok",
		"SSL_KEY=/secret/place/e.pem", "sh", "-c", "x --api-key-file '/secret/place/f.txt'"}), " ")
	for _, name := range []string{"k.pem", " tok", "e.pem", "f.txt"} {
		if strings.Contains(got, "place") || !strings.Contains(got, name) {
			t.Errorf("%q has a path, or no %s", got, name)
		}
	}
}

// What --store-command keeps, and words that are no secrets.
func TestStoreCommand(t *testing.T) {
	t.Parallel()
	for store, want := range map[string]string{storeFull: "scrapestat collect --a -- x --key k", storeNone: "",
		storeRedacted: "scrapestat collect --a -- x --key REDACTED"} {
		if got := strings.Join(redactedCommand(store, []string{"--a"}, nil, []string{"x", "--key", "k"}), " "); got != want {
			t.Errorf("%s: got %q, want %q", store, got, want)
		}
	}
	for _, word := range []string{"meta-llama/Llama-3.1-70B-Instruct", "--max-token-len=5",
		"/data/runs/h100x8-tp4-pp2-bs256-in1024-out128",
		"--sigma=3", "--design=latin", "img:1@sha256:0123456789abcdef0123456789abcdef", "auth.example.com:8000",
		"--tokenizer=gpt2",
		"2026-11-22T10:15:00.123456789Z", "--num-sessions=100", "sha256:9f86d081884c7d659a2feaa0c55ad015"} {
		if got := redactArgs([]string{word})[0]; got != word {
			t.Errorf("%s is kept as %s", word, got)
		}
	}
}
