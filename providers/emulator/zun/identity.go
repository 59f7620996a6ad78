// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Gate admits users and applications.
type Gate struct {
	// Users are passwords by user name. Applications are the secrets of application credentials by ID.
	Users, Applications map[string]string
	// Region is the region in the catalog.
	Region string
	// TokenLife is the validity of a token; 0 means an hour.
	TokenLife time.Duration
	// Admits reports whether a token is valid, instead of the tokens of this server, for a Keystone elsewhere.
	Admits func(token string) bool

	tokens struct {
		sync.Mutex
		ends map[string]time.Time // guarded by the mutex
	}
}

// knows reports whether a token is valid.
func (g *Gate) knows(token string) bool {
	if g.Admits != nil {
		return g.Admits(token)
	}
	g.tokens.Lock()
	defer g.tokens.Unlock()
	return time.Now().Before(g.tokens.ends[token])
}

// EndTokens ends all tokens.
func (g *Gate) EndTokens() {
	g.tokens.Lock()
	defer g.tokens.Unlock()
	clear(g.tokens.ends)
}

// login is a request for a token.
type login struct {
	Auth struct {
		Identity struct {
			Methods  []string
			Password struct {
				User struct {
					Name, Password string
					Domain         struct{ ID, Name string }
				}
			}
			ApplicationCredential struct{ ID, Secret string } `json:"application_credential"`
		}
		Scope json.RawMessage
	}
}

// serveIdentity serves the part of Keystone that issues tokens.
func (s *Server) serveIdentity(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	base := scheme(r) + "://" + r.Host
	switch strings.TrimSuffix(r.URL.Path, "/") {
	case "/identity":
		w.WriteHeader(http.StatusMultipleChoices)
		_ = json.NewEncoder(w).Encode(object{"versions": object{"values": []object{version(base)}}})
	case identityPath:
		_ = json.NewEncoder(w).Encode(object{"version": version(base)})
	case identityPath + "/auth/tokens":
		s.issue(w, r, base)
	default:
		s.refuseLogin(w, http.StatusNotFound, "Could not find it.")
	}
}

func version(base string) object {
	return object{"id": "v3.14", "status": "stable", "links": []object{{"rel": "self", "href": base + identityPath + "/"}}}
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

func (s *Server) refuseLogin(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"error": object{"code": status, "message": message, "title": http.StatusText(status)}})
}

// issue gives a token to a known user or application. A user names the project, and an application credential
// has one.
func (s *Server) issue(w http.ResponseWriter, r *http.Request, base string) {
	var in login
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&in) != nil || len(in.Auth.Identity.Methods) != 1 {
		s.refuseLogin(w, http.StatusBadRequest, "Expecting to find valid JSON in request body.")
		return
	}
	i := in.Auth.Identity
	known := false
	switch i.Methods[0] {
	case "password":
		password, has := s.Users[i.Password.User.Name]
		known = has && password == i.Password.User.Password && len(in.Auth.Scope) > 0
	case "application_credential":
		secret, has := s.Applications[i.ApplicationCredential.ID]
		if !has {
			s.refuseLogin(w, http.StatusNotFound, "Could not find Application Credential: "+i.ApplicationCredential.ID+".")
			return
		}
		known = secret == i.ApplicationCredential.Secret && len(in.Auth.Scope) == 0
	}
	if !known {
		s.refuseLogin(w, http.StatusUnauthorized, "The request you have made requires authentication.")
		return
	}
	life := s.TokenLife
	if life == 0 {
		life = time.Hour
	}
	token, ends := newHex(), time.Now().Add(life)
	s.tokens.Lock()
	if s.tokens.ends == nil {
		s.tokens.ends = map[string]time.Time{}
	}
	s.tokens.ends[token] = ends
	s.tokens.Unlock()
	endpoint := func(kind, name, path string) object {
		var all []object
		for _, where := range []string{"public", "internal", "admin"} {
			all = append(all, object{"id": newHex()[:32], "interface": where, "region": s.Region, "region_id": s.Region, "url": base + path})
		}
		return object{"id": newHex()[:32], "type": kind, "name": name, "endpoints": all}
	}
	w.Header().Set("X-Subject-Token", token)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(object{"token": object{
		"methods": i.Methods, "issued_at": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), "expires_at": ends.UTC().Format("2006-01-02T15:04:05.000000Z"),
		"user":    object{"id": "user-1", "name": "user", "domain": object{"id": "default", "name": "Default"}},
		"project": object{"id": "project-1", "name": "project", "domain": object{"id": "default", "name": "Default"}},
		"roles":   []object{{"id": "role-1", "name": "member"}}, "is_domain": false, "audit_ids": []string{newHex()[:22]},
		"catalog": []object{endpoint("identity", "keystone", identityPath), endpoint("container", "zun", strings.TrimSuffix(Path, "/"))},
	}})
}
