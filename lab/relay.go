//go:build unix

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
)

// relay passes the metrics of a server on without their help texts, which are sentences of others and must not come
// into a recording that is kept. Who cannot reach the server is cut off, as it would be.
func relay(metrics string) (*httptest.Server, string, error) {
	to, err := url.Parse(metrics)
	if err != nil {
		return nil, "", err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
			r.Out.Header.Del("Accept-Encoding") // what the transport asks for itself it decodes
		},
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			if err := r.Body.Close(); err != nil {
				return err
			}
			var kept []byte
			for line := range bytes.Lines(body) {
				if !bytes.HasPrefix(line, []byte("# HELP ")) {
					kept = append(kept, line...)
				}
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(kept)), int64(len(kept))
			r.Header.Set("Content-Length", strconv.Itoa(len(kept)))
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	s := httptest.NewServer(proxy)
	return s, s.URL + to.RequestURI(), nil
}
