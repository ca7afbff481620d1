package simulate

import (
	"net/http"
	"net/url"
	"strconv"
)

// router is a model whose server has answers of its own.
type router interface {
	// route returns the answer to a path, or nil for the usual one. The world is
	// at the present and the gauges are refreshed.
	route(u *url.URL) *answer
}

// scraped is a model that notices its scrapes.
type scraped interface{ scraped() }

// answer is a response that is not the usual exposition.
type answer struct {
	status      int
	contentType string
	location    string
	body        []byte
}

func jsonAnswer(status int, body string) *answer {
	return &answer{status: status, contentType: "application/json", body: []byte(body)}
}

// missing is the answer of FastAPI for a path that is not mounted.
func missing() *answer { return jsonAnswer(http.StatusNotFound, `{"detail":"Not Found"}`) }

func (a *answer) write(w http.ResponseWriter) {
	if a.contentType != "" {
		w.Header().Set("Content-Type", a.contentType)
	}
	if a.location != "" {
		w.Header().Set("Location", a.location)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // fails when the client has gone; there is nobody left to tell
}

// route returns the own answer of the server to a path, if any, or the library
// that writes the exposition there, nil when it is not mounted there.
func (s *Server) route(u *url.URL) (own *answer, d *dialect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.m.(router); ok {
		s.advance()
		s.refresh()
		if own := m.route(u); own != nil {
			return own, nil
		}
	}
	mount := "/metrics"
	if s.opt.Redirect {
		if u.Path == mount {
			return &answer{status: http.StatusTemporaryRedirect, location: mount + "/"}, nil
		}
		mount += "/"
	}
	switch u.Path {
	case "":
		return nil, nil
	case mount, s.opt.ExtraPath, s.profile.path:
		return nil, s.w.reg.d
	}
	return nil, nil
}
