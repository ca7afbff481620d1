package discover

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// concealed is what a secret shows of itself.
const concealed = "<secret>"

// Secret is a text that cannot be printed, logged or encoded: whoever tries gets
// "<secret>". Only this package can read it.
type Secret struct{ text string }

// NewSecret returns text as a secret.
func NewSecret(text string) Secret { return Secret{text} }

// String returns "<secret>".
func (Secret) String() string { return concealed }

// GoString returns "<secret>".
func (Secret) GoString() string { return concealed }

// Format writes "<secret>" for every verb.
func (Secret) Format(f fmt.State, _ rune) { io.WriteString(f, concealed) }

// MarshalText returns "<secret>", in JSON and YAML too.
func (Secret) MarshalText() ([]byte, error) { return []byte(concealed), nil }

// MarshalJSON returns "<secret>" as a JSON string.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + concealed + `"`), nil }

// MarshalYAML returns "<secret>".
func (Secret) MarshalYAML() (any, error) { return concealed, nil }

// LogValue returns "<secret>".
func (Secret) LogValue() slog.Value { return slog.StringValue(concealed) }

// minSecret is the length from which a text is searched for in messages: shorter ones would hide half of every message.
const minSecret = 4

// maxSecrets bounds how many texts a vault remembers: tokens rotate.
const maxSecrets = 256

// vault remembers the secrets that were sent, so that they can be taken out of messages. It is safe for concurrent use.
type vault struct {
	mu   sync.Mutex
	seen []string
}

// add remembers a secret, the newest first.
func (v *vault) add(text string) {
	text = strings.TrimSpace(text)
	if len(text) < minSecret {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if slices.Contains(v.seen, text) {
		return
	}
	v.seen = append([]string{text}, v.seen[:min(len(v.seen), maxSecrets-1)]...)
}

// addHeader remembers what a header says: the whole value, a token behind its
// scheme, and the user and password of basic authentication.
func (v *vault) addHeader(value string) {
	v.add(value)
	scheme, token, ok := strings.Cut(value, " ")
	if !ok {
		return
	}
	v.add(token)
	if !strings.EqualFold(scheme, "basic") {
		return
	}
	if plain, err := base64.StdEncoding.DecodeString(token); err == nil {
		v.add(string(plain))
		if user, password, ok := strings.Cut(string(plain), ":"); ok {
			v.add(user)
			v.add(password)
		}
	}
}

// redact takes all remembered secrets out of a text.
func (v *vault) redact(text string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.seen {
		text = strings.ReplaceAll(text, s, concealed)
	}
	return text
}

// observer is the last round tripper before the transport: it remembers the
// secrets that a request carries, wherever they came from.
type observer struct {
	next    http.RoundTripper
	vault   *vault
	headers []string
}

func (o *observer) RoundTrip(r *http.Request) (*http.Response, error) {
	o.note(r.Header.Values("Authorization"))
	for _, name := range o.headers {
		o.note(r.Header.Values(name))
	}
	return o.next.RoundTrip(r)
}

func (o *observer) note(values []string) {
	for _, v := range values {
		o.vault.addHeader(v)
	}
}

// CloseIdleConnections closes those of the transport.
func (o *observer) CloseIdleConnections() {
	if c, ok := o.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
