package discover

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/common/config"

	"github.com/scrapestat/scrapestat/scrape"
)

// Client sends requests with the authentication and TLS settings of one job. It
// is safe for concurrent use. Whoever has it closes its connections.
type Client struct {
	rt   http.RoundTripper
	said http.RoundTripper // answers with the header that rt would send
	// explain adds to errors what to do about them, for those who do not, with the
	// flags of that prefix; nil adds nothing.
	explain *string
	// files is set when credentials in files count more than those of an address.
	files bool
	tls   *tls.Config
	vault *vault
}

// RoundTrip implements [http.RoundTripper].
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.files && r.URL.User != nil { // net/http has made it the authorization
		r = r.Clone(r.Context())
		r.Header.Del("Authorization")
	}
	resp, err := c.rt.RoundTrip(r)
	if err == nil || c.explain == nil {
		return resp, err
	}
	if hint := scrape.TLSHint(err, *c.explain); hint != "" {
		err = fmt.Errorf("%w%s", err, hint)
	}
	return nil, err
}

// CloseIdleConnections closes the connections that are not in use.
func (c *Client) CloseIdleConnections() {
	if i, ok := c.rt.(interface{ CloseIdleConnections() }); ok {
		i.CloseIdleConnections()
	}
}

// TLS returns the TLS settings, for a protocol that is no HTTP. The client
// certificate is read again for each connection.
func (c *Client) TLS() *tls.Config { return c.tls.Clone() }

// Authorization returns what the header Authorization of a request would be now,
// "" without one, for a protocol that is no HTTP. Files are read again.
func (c *Client) Authorization(ctx context.Context) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost", nil)
	if err != nil {
		return "", fmt.Errorf("prepare authorization: %w", err)
	}
	resp, err := c.said.RoundTrip(r)
	if err != nil {
		return "", fmt.Errorf("prepare authorization: %w", err)
	}
	defer resp.Body.Close()
	return resp.Header.Get("Authorization"), nil
}

// echo answers each request with its own header.
type echo struct{}

func (echo) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: r.Header, Body: http.NoBody, Request: r}, nil
}

// Redact takes the secrets that were sent out of a text.
func (c *Client) Redact(text string) string { return c.vault.redact(text) }

// reach says how a client gets to its servers.
type reach struct {
	socket string // path of a Unix socket, for all requests
	// guarded refuses link-local addresses, where clouds keep the credentials of a
	// machine: for addresses that somebody else than the user says.
	guarded bool
	// bare leaves out the credentials of the job.
	bare bool
}

// newClient makes the client of validated settings. Files are read once now, so that a missing one is told at the
// start, and again when they are used: tokens and certificates may be replaced during the run.
func newClient(c config.HTTPClientConfig, basicFile string, to reach, l scrape.Limits) (*Client, error) {
	client := &Client{vault: &vault{}}
	if err := checkFiles(&c); err != nil {
		return nil, err
	}
	tlsConfig, err := config.NewTLSConfig(&c.TLSConfig)
	if err != nil {
		return nil, fmt.Errorf("read TLS settings: %w", err)
	}
	base := func(t *tls.Config) (http.RoundTripper, error) {
		transport := scrape.NewTransport(t, l)
		transport.DialContext = to.dialer(cmp.Or(l.Connect, 2*time.Second))
		transport.Proxy = c.Proxy()
		transport.ProxyConnectHeader = c.GetProxyConnectHeader()
		return &observer{next: transport, vault: client.vault, headers: headerNames(c.HTTPHeaders)}, nil
	}
	rt, err := base(tlsConfig)
	if s := (config.TLSRoundTripperSettings{CA: file(c.TLSConfig.CAFile), Cert: file(c.TLSConfig.CertFile),
		Key: file(c.TLSConfig.KeyFile)}); err == nil && s.CA != nil {
		rt, err = config.NewTLSRoundTripperWithContext(context.Background(), tlsConfig, s, base)
	}
	if err != nil {
		return nil, fmt.Errorf("read TLS settings: %w", err)
	}
	client.tls = tlsConfig
	client.rt = client.authenticate(&c, basicFile, rt)
	client.said = client.authenticate(&c, basicFile, &observer{next: echo{}, vault: client.vault})
	return client, nil
}

// file is a secret in a file, nil without one.
func file(path string) config.SecretReader {
	if path == "" {
		return nil
	}
	return config.NewFileSecret(path)
}

func headerNames(h *config.Headers) []string {
	if h == nil {
		return nil
	}
	return slices.Collect(maps.Keys(h.Headers))
}

// authenticate wraps a transport in what adds credentials to requests.
func (c *Client) authenticate(s *config.HTTPClientConfig, basicFile string, rt http.RoundTripper) http.RoundTripper {
	if a := s.Authorization; a != nil {
		rt = config.NewAuthorizationCredentialsRoundTripper(a.Type, c.secret(string(a.Credentials), a.CredentialsFile), rt)
	}
	if b := s.BasicAuth; b != nil {
		rt = config.NewBasicAuthRoundTripper(c.secret(b.Username, b.UsernameFile),
			c.secret(string(b.Password), b.PasswordFile), rt)
	}
	if basicFile != "" {
		rt = config.NewBasicAuthRoundTripper(basicPart{basicFile, 0}, basicPart{basicFile, 1}, rt)
	}
	if o := s.OAuth2; o != nil {
		text, path := string(o.ClientSecret), o.ClientSecretFile
		if len(o.ClientCertificateKey) > 0 || o.ClientCertificateKeyFile != "" {
			text, path = string(o.ClientCertificateKey), o.ClientCertificateKeyFile
		}
		rt = config.NewOAuth2RoundTripper(c.secret(text, path), o, rt)
	}
	if s.HTTPHeaders != nil {
		rt = config.NewHeadersRoundTripper(s.HTTPHeaders, rt)
	}
	return rt
}

// secret returns a secret that is given as a text or in a file, and tells the vault what it is.
func (c *Client) secret(text, path string) config.SecretReader {
	if path != "" {
		return watched{config.NewFileSecret(path), c.vault}
	}
	return watched{config.NewInlineSecret(text), c.vault}
}

// watched tells the vault each secret that is fetched.
type watched struct {
	config.SecretReader
	vault *vault
}

func (w watched) Fetch(ctx context.Context) (string, error) {
	text, err := w.SecretReader.Fetch(ctx)
	w.vault.add(text)
	return text, err
}

// basicPart is the user or the password of a file that holds USER:PASSWORD.
type basicPart struct {
	path string
	part int
}

func (b basicPart) Fetch(context.Context) (string, error) {
	text, err := readSmall(b.path)
	if err != nil {
		return "", err
	}
	user, password, ok := strings.Cut(strings.TrimRight(string(text), "\r\n"), ":")
	if !ok || user == "" {
		return "", fmt.Errorf("read %s: want USER:PASSWORD on its first line", b.path)
	}
	return [2]string{user, password}[b.part], nil
}

func (b basicPart) Description() string { return "file " + b.path }

func (b basicPart) Immutable() bool { return false }

// checkFiles reads the files of settings, so that one that cannot be read ends the program before the run begins.
func checkFiles(c *config.HTTPClientConfig) error {
	paths := []string{c.TLSConfig.CAFile, c.TLSConfig.CertFile, c.TLSConfig.KeyFile}
	if c.Authorization != nil {
		paths = append(paths, c.Authorization.CredentialsFile)
		if c.Authorization.CredentialsRef != "" {
			return errors.New("authorization: credentials_ref needs a secret manager; give credentials_file")
		}
	}
	if c.BasicAuth != nil {
		paths = append(paths, c.BasicAuth.UsernameFile, c.BasicAuth.PasswordFile)
		if c.BasicAuth.UsernameRef+c.BasicAuth.PasswordRef != "" {
			return errors.New("basic_auth: username_ref and password_ref need a secret manager; give the files")
		}
	}
	if c.OAuth2 != nil {
		paths = append(paths, c.OAuth2.ClientSecretFile, c.OAuth2.ClientCertificateKeyFile)
	}
	for _, p := range paths {
		if p == "" {
			continue
		}
		if _, err := readSmall(p); err != nil {
			return err
		}
	}
	return nil
}

// maxSecretFile bounds a file with a token, key or certificate.
const maxSecretFile = 1 << 20

// readSmall reads a file of credentials.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read credentials: %w", err)
	case !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0 || info.Size() > maxSecretFile:
		return nil, fmt.Errorf("read credentials %s: want a file of at most %d bytes", path, maxSecretFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	return data, nil
}

// dialer returns how connections are made, each within patience.
func (to reach) dialer(patience time.Duration) func(context.Context, string, string) (net.Conn, error) {
	d := &net.Dialer{Timeout: patience, KeepAlive: 30 * time.Second}
	if to.guarded {
		d.Control = func(_, address string, _ syscall.RawConn) error { return guard(address) }
	}
	if to.socket != "" {
		return func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", to.socket) }
	}
	return d.DialContext
}

// guard refuses addresses at which a discovered name has no business: those of
// the link, and the metadata services of clouds.
func guard(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil // no IP address: a socket
	}
	a := ap.Addr().Unmap().WithZone("")
	if v4 := embedded(a); reserved(a) || reserved(v4) {
		return fmt.Errorf("address %s is link-local or a metadata service and was not given by the user: name it in "+
			"static_configs to poll it", ap.Addr())
	}
	return nil
}

// reserved reports whether an address is of the link, of a group, or where a cloud
// has its metadata service though it is not of the link.
func reserved(a netip.Addr) bool {
	if a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsMulticast() {
		return true
	}
	switch a.String() {
	case "100.100.100.200", "168.63.129.16", "192.0.0.192", // Alibaba, Azure, Oracle
		"fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42": // AWS, Google, Oracle, Scaleway
		return true
	}
	return false
}

// embedded is the IPv4 address that an IPv6 address leads to by translation (NAT64),
// by 6to4 or in the old compatible form; the zero address if none.
func embedded(a netip.Addr) netip.Addr {
	b := a.As16()
	switch {
	case a.Is4():
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a), netip.MustParsePrefix("64:ff9b:1::/48").Contains(a),
		netip.MustParsePrefix("::/96").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:]))
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return netip.Addr{}
}
