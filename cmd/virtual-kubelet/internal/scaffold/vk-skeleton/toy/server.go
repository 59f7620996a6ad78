// SPDX-License-Identifier: Apache-2.0

package toy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ServeHTTP answers requests.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

func (s *Server) addRoutes() {
	s.routes.HandleFunc("GET /v1/groups", s.list)
	s.routes.HandleFunc("PUT /v1/groups/{group}", s.putGroup)
	s.routes.HandleFunc("GET /v1/groups/{group}", s.get)
	s.routes.HandleFunc("DELETE /v1/groups/{group}", s.remove)
	s.routes.HandleFunc("GET /v1/groups/{group}/containers/{container}/log", s.readLog)
	s.routes.HandleFunc("GET /v1/groups/{group}/containers/{container}/exec", s.execCommand)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	groups, next := s.listAfter(func(tags map[string]string) bool {
		for _, tag := range r.URL.Query()["tag"] {
			if key, value, _ := strings.Cut(tag, "="); tags[key] != value {
				return false
			}
		}
		return true
	}, r.URL.Query().Get("after"))
	answerJSON(w, http.StatusOK, page{Groups: groups, Next: next})
}

func (s *Server) putGroup(w http.ResponseWriter, r *http.Request) {
	var spec Spec
	body := json.NewDecoder(r.Body)
	body.DisallowUnknownFields()
	if err := body.Decode(&spec); err != nil || len(spec.Containers) == 0 {
		refuseRequest(w, http.StatusBadRequest, fmt.Sprintf("this is no group with containers: %v", err))
		return
	}
	g, made, same := s.createGroup(r.PathValue("group"), spec)
	switch {
	case made:
		answerJSON(w, http.StatusCreated, g)
	case same:
		answerJSON(w, http.StatusOK, g)
	default:
		refuseRequest(w, http.StatusConflict, "the group is there, and was asked for otherwise")
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	if g, ok := s.findGroup(r.PathValue("group")); ok {
		answerJSON(w, http.StatusOK, g)
		return
	}
	refuseRequest(w, http.StatusNotFound, "there is no such group")
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	grace, err := time.ParseDuration(r.URL.Query().Get("grace") + "s")
	switch {
	case err != nil:
		refuseRequest(w, http.StatusBadRequest, "grace: want a number of seconds")
	case !s.stop(r.PathValue("group"), grace):
		refuseRequest(w, http.StatusNotFound, "there is no such group")
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *Server) readLog(w http.ResponseWriter, r *http.Request) {
	c := s.findContainer(r.PathValue("group"), r.PathValue("container"))
	if c == nil {
		refuseRequest(w, http.StatusNotFound, "there is no such container")
		return
	}
	log := c.logOf(r.URL.Query().Get("previous") == "true")
	if log == nil {
		refuseRequest(w, http.StatusNotFound, "the container has no such run")
		return
	}
	since, _ := time.Parse(time.RFC3339Nano, r.URL.Query().Get("since")) // without it, all
	_, _ = w.Write(log.textSince(since))                                 // the caller may have gone
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller may have gone
}

func refuseRequest(w http.ResponseWriter, status int, why string) {
	answerJSON(w, status, refusal{Error: why})
}
