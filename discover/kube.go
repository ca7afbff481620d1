package discover

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"github.com/scrapestat/scrapestat/scrape"
)

// kube asks the API server of a Kubernetes cluster for lists. It keeps no watch:
// it lists again, in pages, always the newest state.
type kube struct {
	server    string
	namespace string // its own, "" when that is not known
	ask       asker
	client    *Client
}

// serviceAccount is where a pod finds its credentials.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// kubeconfig is what of a kubeconfig file is understood.
type kubeconfig struct {
	CurrentContext string `yaml:"current-context"`
	Clusters       []struct {
		Name    string `yaml:"name"`
		Cluster struct {
			Server     string `yaml:"server"`
			CAFile     string `yaml:"certificate-authority"`
			CAData     string `yaml:"certificate-authority-data"`
			ServerName string `yaml:"tls-server-name"`
			Insecure   bool   `yaml:"insecure-skip-tls-verify"`
			Proxy      string `yaml:"proxy-url"`
		} `yaml:"cluster"`
	} `yaml:"clusters"`
	Contexts []struct {
		Name    string `yaml:"name"`
		Context struct {
			Cluster   string `yaml:"cluster"`
			User      string `yaml:"user"`
			Namespace string `yaml:"namespace"`
		} `yaml:"context"`
	} `yaml:"contexts"`
	Users []struct {
		Name string   `yaml:"name"`
		User kubeUser `yaml:"user"`
	} `yaml:"users"`
}

type kubeUser struct {
	Token     string    `yaml:"token"`
	TokenFile string    `yaml:"tokenFile"`
	CertFile  string    `yaml:"client-certificate"`
	CertData  string    `yaml:"client-certificate-data"`
	KeyFile   string    `yaml:"client-key"`
	KeyData   string    `yaml:"client-key-data"`
	Username  string    `yaml:"username"`
	Password  string    `yaml:"password"`
	Exec      yaml.Node `yaml:"exec"`
	Provider  yaml.Node `yaml:"auth-provider"`
}

// newKube finds the API server: the one that is given, that of a kubeconfig, that
// of the cluster this runs in, or that of the user's kubeconfig.
func (d *Discoverer) newKube(server, file string, c config.HTTPClientConfig) (*kube, error) {
	k := &kube{server: server}
	var err error
	switch {
	case server != "" && file != "":
		return nil, errors.New("api_server and kubeconfig_file exclude each other")
	case server != "":
	case file != "":
		err = k.fromFile(file, &c)
	case os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		k.inCluster(cmp.Or(d.o.ServiceAccount, serviceAccount), &c)
	default:
		err = k.fromFile(defaultKubeconfig(), &c)
	}
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(k.server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("the address of the API server is no http or https URL")
	}
	k.server = strings.TrimRight(k.server, "/")
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if k.client, err = d.keep(newClient(c, "", reach{}, scrape.Limits{})); err != nil {
		return nil, err
	}
	k.ask = newAsker(k.client)
	return k, nil
}

func defaultKubeconfig() string {
	if list := os.Getenv("KUBECONFIG"); list != "" {
		return filepath.SplitList(list)[0]
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ".kube/config"
	}
	return filepath.Join(home, ".kube", "config")
}

// inCluster takes the credentials of the pod this runs in. The token is read again for each request: it rotates.
func (k *kube) inCluster(dir string, c *config.HTTPClientConfig) {
	k.server = "https://" + net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	c.TLSConfig.CAFile = filepath.Join(dir, "ca.crt")
	c.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: filepath.Join(dir, "token")}
	if ns, err := readSmall(filepath.Join(dir, "namespace")); err == nil {
		k.namespace = strings.TrimSpace(string(ns))
	}
}

// fromFile takes server and user of the current context.
func (k *kube) fromFile(path string, c *config.HTTPClientConfig) error {
	data, err := readLimited(path)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w; name one with --kubeconfig or KUBECONFIG", err)
	}
	var f kubeconfig
	if err := yaml.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("read kubeconfig %s: %s", path, yamlText(err))
	}
	if err := k.current(&f, filepath.Dir(path), c); err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	return nil
}

func (k *kube) current(f *kubeconfig, dir string, c *config.HTTPClientConfig) error {
	cluster, user, found := "", "", false
	for _, x := range f.Contexts {
		if x.Name == f.CurrentContext {
			cluster, user, k.namespace, found = x.Context.Cluster, x.Context.User, x.Context.Namespace, true
		}
	}
	if !found {
		return fmt.Errorf("there is no context %q; choose one with kubectl config use-context", f.CurrentContext)
	}
	for _, x := range f.Clusters {
		if x.Name != cluster {
			continue
		}
		k.server = x.Cluster.Server
		if x.Cluster.Proxy != "" {
			u, err := url.Parse(x.Cluster.Proxy)
			if err != nil {
				return errors.New("proxy-url is no URL")
			}
			c.ProxyURL = config.URL{URL: u}
		}
		c.TLSConfig.ServerName, c.TLSConfig.InsecureSkipVerify = x.Cluster.ServerName, x.Cluster.Insecure
		c.TLSConfig.CAFile = config.JoinDir(dir, x.Cluster.CAFile)
		if err := fromBase64("certificate-authority-data", x.Cluster.CAData, &c.TLSConfig.CAFile,
			&c.TLSConfig.CA); err != nil {
			return err
		}
	}
	for _, x := range f.Users {
		if x.Name == user {
			return x.User.apply(dir, c)
		}
	}
	return nil
}

// apply takes over the credentials of a user.
func (u *kubeUser) apply(dir string, c *config.HTTPClientConfig) error {
	if !u.Exec.IsZero() || !u.Provider.IsZero() {
		return errors.New("the user's credentials come from a program (exec or auth-provider), which is not run: make a " +
			"token with kubectl create token, or use kubectl proxy and api_server http://127.0.0.1:8001")
	}
	c.TLSConfig.CertFile, c.TLSConfig.KeyFile = config.JoinDir(dir, u.CertFile), config.JoinDir(dir, u.KeyFile)
	if err := fromBase64("client-certificate-data", u.CertData, &c.TLSConfig.CertFile, &c.TLSConfig.Cert); err != nil {
		return err
	}
	key := string(c.TLSConfig.Key)
	if err := fromBase64("client-key-data", u.KeyData, &c.TLSConfig.KeyFile, &key); err != nil {
		return err
	}
	c.TLSConfig.Key = config.Secret(key)
	switch {
	case u.TokenFile != "":
		c.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: config.JoinDir(dir, u.TokenFile)}
	case u.Token != "":
		c.Authorization = &config.Authorization{Type: "Bearer", Credentials: config.Secret(u.Token)}
	case u.Username != "":
		c.BasicAuth = &config.BasicAuth{Username: u.Username, Password: config.Secret(u.Password)}
	}
	return nil
}

// fromBase64 puts data that stands in the file itself in the place of a path.
func fromBase64(key, data string, path, text *string) error {
	if data == "" {
		return nil
	}
	plain, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Errorf("%s is not base64", key)
	}
	*path, *text = "", string(plain)
	return nil
}

const (
	kubePage = 500    // objects of a page
	maxPages = 200    // of a list
	maxItems = 50_000 // of a list
)

// list returns all objects of a kind ("pods") in a namespace, "" for all.
func list[T any](ctx context.Context, k *kube, kind, namespace string, s kubeSelector) ([]T, error) {
	path := "/api/v1/" + kind
	if namespace != "" {
		path = "/api/v1/namespaces/" + url.PathEscape(namespace) + "/" + kind
	}
	q := url.Values{"limit": {fmt.Sprint(kubePage)}}
	if s.Label != "" {
		q.Set("labelSelector", s.Label)
	}
	if s.Field != "" {
		q.Set("fieldSelector", s.Field)
	}
	var out []T
	for range maxPages {
		data, err := k.ask.get(ctx, k.server+path+"?"+q.Encode())
		if err != nil {
			return nil, rights(err, kind, namespace)
		}
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []T `json:"items"`
		}
		if err := json.Unmarshal(data, &page); err != nil {
			return nil, fmt.Errorf("list %s: the answer of %s is no list of Kubernetes", kind, k.server)
		}
		if out = append(out, page.Items...); len(out) > maxItems {
			return nil, fmt.Errorf("list %s: more than %d; give namespaces or selectors", kind, maxItems)
		}
		if page.Metadata.Continue == "" {
			return out, nil
		}
		q.Set("continue", page.Metadata.Continue)
	}
	return nil, fmt.Errorf("list %s: more than %d pages", kind, maxPages)
}

// rights names the right that is missing.
func rights(err error, kind, namespace string) error {
	where := "in namespace " + namespace
	if namespace == "" {
		where = "in all namespaces"
	}
	s, _ := errors.AsType[*statusError](err)
	if s != nil && (s.status == http.StatusUnauthorized || s.status == http.StatusForbidden) {
		return fmt.Errorf("list %s %s: %w; the user needs the right to list %s there", kind, where, err, kind)
	}
	return fmt.Errorf("list %s %s: %w", kind, where, err)
}
