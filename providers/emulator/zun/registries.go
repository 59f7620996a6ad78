// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"net/http"
	"net/url"
	"slices"
)

// registry is a login for images.
type registry struct{ uuid, name, domain, username, password string }

func (r *registry) show() object {
	return object{"uuid": r.uuid, "name": r.name, "domain": r.domain, "username": r.username, "password": "******", "project_id": "project-1", "user_id": "user-1"}
}

func text(o object, name string) string {
	t, _ := o[name].(string)
	return t
}

// serveRegistries answers requests about registries.
func (s *Server) serveRegistries(method string, path []string, query url.Values, body object) (answer any, status int, err error) {
	if method == http.MethodPost || method == http.MethodPatch {
		if err := CheckBody(map[bool]string{true: "registries.post", false: "registries.patch"}[method == http.MethodPost], body); err != nil {
			return nil, 0, fail(http.StatusBadRequest, "schema-validation-error", "%v", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	in, _ := body["registry"].(object)
	if len(path) == 0 && method == http.MethodPost {
		r := &registry{newUUID(), text(in, "name"), text(in, "domain"), text(in, "username"), text(in, "password")}
		s.registries = append(s.registries, r)
		return object{"registry": r.show()}, http.StatusCreated, nil
	}
	if len(path) == 0 {
		out := []object{}
		for _, r := range s.registries {
			if query.Get("name") == "" || r.name == query.Get("name") {
				out = append(out, r.show())
			}
		}
		return object{"registries": out, "next": nil}, http.StatusOK, nil
	}
	r := s.registry(path[0])
	if r == nil {
		return nil, 0, fail(http.StatusNotFound, "registry-not-found", "Registry %s could not be found.", path[0])
	}
	switch method {
	case http.MethodDelete:
		s.registries = slices.DeleteFunc(s.registries, func(other *registry) bool { return other == r })
		return nil, http.StatusNoContent, nil
	case http.MethodPatch:
		for name, field := range map[string]*string{"name": &r.name, "domain": &r.domain, "username": &r.username, "password": &r.password} {
			if v, has := in[name].(string); has {
				*field = v
			}
		}
	}
	return object{"registry": r.show()}, http.StatusOK, nil
}

// registry returns the registry with an ID or a name, or nil. s.mu is held.
func (s *Server) registry(ident string) *registry {
	for _, r := range s.registries {
		if r.uuid == ident || r.name == ident {
			return r
		}
	}
	return nil
}
