// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// act handles an action on one container.
func (s *Server) act(request string, r *http.Request, rec *record, operation string, path []string, query url.Values) (answer any, status int, err error) {
	post := r.Method == http.MethodPost
	if operation != "get" && operation != "containers.delete" && post != slices.Contains(posts, operation) {
		return nil, 0, fail(http.StatusNotFound, "not-found", "there is no %s %s", r.Method, operation)
	}
	switch operation {
	case "get":
		s.refresh(r.Context(), rec)
		s.mu.Lock()
		defer s.mu.Unlock()
		if rec.registry != "" && s.registry(rec.registry) == nil {
			return nil, 0, fail(http.StatusInternalServerError, "server", "the registry of the container is gone")
		}
		return rec.show(), http.StatusOK, nil
	case "container_actions":
		s.mu.Lock()
		defer s.mu.Unlock()
		return rec.showActions(path[3:])
	case "containers.delete":
		return nil, http.StatusNoContent, s.delete(rec, query)
	}
	if err := s.allows(rec, operation); err != nil {
		return nil, 0, err
	}
	switch operation {
	case "start":
		s.mu.Lock()
		a := s.note(rec, operation, request)
		s.mu.Unlock()
		s.later(func() { s.begin(rec, "container_starting", a) })
	case "stop", "kill":
		grace, err := strconv.ParseInt(query.Get("timeout"), 10, 64)
		if err != nil {
			grace = 10
		}
		if operation == "kill" {
			grace = 0
		}
		s.mu.Lock()
		a := s.note(rec, operation, request)
		s.mu.Unlock()
		s.later(func() { s.stop(rec, a, grace) })
	case "pause", "unpause":
		s.mu.Lock()
		s.note(rec, operation, request)
		s.mu.Unlock()
		s.later(func() {
			s.change(rec, func() {
				rec.status, rec.fixed = map[string]string{"pause": "Paused", "unpause": "Running"}[operation], operation == "pause"
			})
		})
	case "logs":
		log, err := s.log(r.Context(), rec, query)
		return log, http.StatusOK, err
	case "execute":
		out, err := s.execute(r, rec, query)
		return out, http.StatusOK, err
	case "attach":
		if rec.body["interactive"] != true {
			return nil, 0, fail(http.StatusBadRequest, "no-interactive-flag", "Container doesn't support to be attached, please check the interactive set properly")
		}
		return s.console(r, rec, &session{rec: rec, attach: true}), http.StatusOK, nil
	case "execute_resize", "resize":
		return nil, http.StatusOK, s.resize(rec, query)
	default:
		return nil, 0, fail(http.StatusNotFound, "not-found", "there is no %s", operation)
	}
	return nil, http.StatusAccepted, nil
}

// posts are the actions with the method POST.
var posts = []string{"start", "stop", "kill", "pause", "unpause", "execute", "execute_resize", "resize"}

// allows refuses an action that the state does not allow.
func (s *Server) allows(rec *record, operation string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if states, known := table().States[operation]; known && !slices.Contains(states, rec.status) {
		return fail(http.StatusConflict, "invalid-state-exception", "Cannot %s container %s in %s state", operation, rec.uuid, rec.status)
	}
	return nil
}

// showActions returns the actions of a container, the newest first, or one action by the ID of its request.
func (rec *record) showActions(path []string) (answer any, status int, err error) {
	const form = "2006-01-02T15:04:05.000000"
	all := []object{}
	for _, a := range rec.actions {
		o := object{"action": a.name, "container_uuid": rec.uuid, "request_id": a.request, "start_time": a.start.UTC().Format(form), "finish_time": nil,
			"message": orNil(a.message), "project_id": "project-1", "user_id": "user-1"}
		if !a.finish.IsZero() {
			o["finish_time"] = a.finish.UTC().Format(form)
		}
		if len(path) > 0 && path[0] == a.request {
			return o, http.StatusOK, nil
		}
		all = append(all, o)
	}
	if len(path) > 0 {
		return nil, 0, fail(http.StatusNotFound, "resource-not-found", "Action %s could not be found.", path[0])
	}
	return object{"containerActions": all}, http.StatusOK, nil
}

// delete removes a container after the answer.
func (s *Server) delete(rec *record, query url.Values) error {
	operation := "delete"
	if isTrue(query.Get("stop")) {
		operation = "delete_after_stop"
	}
	if isTrue(query.Get("force")) {
		return fail(http.StatusForbidden, "policy-not-authorized", "Policy doesn't allow container:delete_force to be performed.")
	}
	if err := s.allows(rec, operation); err != nil {
		return err
	}
	s.later(func() {
		s.change(rec, func() { rec.status, rec.task = "Deleting", "container_deleting" })
		s.remove(rec)
	})
	return nil
}

func isTrue(text string) bool {
	return slices.Contains([]string{"1", "true", "True", "TRUE", "on", "yes"}, text)
}

// stop stops the current run. The state changes when the run has ended, and the detail stays as before.
func (s *Server) stop(rec *record, a *action, grace int64) {
	s.mu.Lock()
	r := rec.last()
	end := func() { rec.task, rec.status, rec.reason, a.finish = "", "Stopped", "", a.start }
	if r == nil || r.stateOf().Terminated != nil {
		end()
		s.mu.Unlock()
		return
	}
	rec.task, rec.after, r.stopped = "container_stopping", end, true
	s.mu.Unlock()
	logged, _ := s.logOf(s.Context, r, nil) // a run without a log has no text
	s.change(rec, func() { r.logged = logged })
	if err := s.Fleet.Stop(s.Context, r.id, grace); err != nil && !errdefs.IsNotFound(err) {
		s.change(rec, func() { rec.task, rec.status, rec.reason = "", "Error", err.Error() })
	}
}
