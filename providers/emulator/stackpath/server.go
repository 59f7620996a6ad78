// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// Server is StackPath with one stack and one client. The exported fields must not change while it serves.
type Server struct {
	Stack, ClientID, ClientSecret string
	// TokenLife is the validity of a token; 0 means an hour.
	TokenLife time.Duration
	// Cities are the codes of the locations.
	Cities []string
	// Quota is the maximum number of workloads of the stack; 0 means any number.
	Quota int
	// MostItems is the maximum number of items of a page; 0 means 100.
	MostItems int
	// FollowFor is the time for which a log without new lines is followed; 0 means a minute.
	FollowFor time.Duration
	// Fleet runs the containers.
	Fleet *emulator.Fleet

	mu        sync.Mutex
	tokens    map[string]time.Time // guarded by mu; the end of each token
	workloads []*workload          // guarded by mu, with their fields; the oldest first
	made      int                  // guarded by mu; number of workloads so far
	streams   map[string][]string  // guarded by mu; open streams, by kind
}

// workload is a workload of the stack.
type workload struct {
	id, slug string
	sent     object // the body of the create request
	labels   map[string]any
	consoles bool // containers are reached by the console
	created  time.Time
	deleted  time.Time
	grace    int64
}

// Report handles a report of the runner. Pass it to the runner's NotifyPods.
func (s *Server) Report(pod *corev1.Pod) { s.Fleet.Report(pod) }

// Workloads returns the IDs of the workloads with a label, the oldest first.
func (s *Server) Workloads(key, value string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workloads {
		if w.labels[key] == value {
			ids = append(ids, w.id)
		}
	}
	return ids
}

// Left returns the leftovers of the client, by kind: workloads with a running container or without a deletion,
// logs that are read, and sessions of the console.
func (s *Server) Left() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := map[string][]string{}
	for _, w := range s.workloads {
		seen, err := s.Fleet.Get(context.Background(), w.id)
		if !errdefs.IsNotFound(err) && !seen.Gone { // lists may show a deleted workload for a while
			left["workloads"] = append(left["workloads"], w.id)
		}
	}
	for kind, names := range s.streams {
		left[kind] = slices.Clone(names)
	}
	return left
}

// opened records that a stream is open, and returns a function that records its close.
func (s *Server) opened(kind, name string) (closed func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = map[string][]string{}
	}
	s.streams[kind] = append(s.streams[kind], name)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.Index(s.streams[kind], name)
		s.streams[kind] = slices.Delete(s.streams[kind], i, i+1)
	}
}

// Lose forgets a workload, as if it was deleted elsewhere. Its containers are not stopped.
func (s *Server) Lose(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workloads = slices.DeleteFunc(s.workloads, func(w *workload) bool { return w.id == id })
}

// Revoke ends all tokens.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == tokenPath {
		s.login(w, r)
		return
	}
	answer, err := s.answer(w, r)
	var f *failure
	switch {
	case errors.As(err, &f):
		f.write(w)
	case err != nil:
		(&failure{http.StatusInternalServerError, codeInternal, err.Error(), "", ""}).write(w)
	case answer != nil:
		write(w, http.StatusOK, answer)
	}
}

// login gives a token to the client.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.ParseForm() != nil || r.PostForm.Get("grant_type") != "client_credentials" || r.PostForm.Get("scope") != "workloads" {
		write(w, http.StatusBadRequest, object{"error": "invalid_request"})
		return
	}
	switch {
	case r.PostForm.Get("client_id") != s.ClientID:
		(&failure{http.StatusNotFound, codeNotFound, "there is no such client", "", ""}).write(w)
		return
	case r.PostForm.Get("client_secret") != s.ClientSecret:
		write(w, http.StatusUnauthorized, object{"error": "invalid_client"})
		return
	}
	life, token := s.TokenLife, rand.Text()
	if life == 0 {
		life = time.Hour
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens == nil {
		s.tokens = map[string]time.Time{}
	}
	s.tokens[token] = time.Now().Add(life)
	write(w, http.StatusOK, object{"access_token": token, "token_type": "bearer", "expires_in": int(life.Seconds())})
}

// isKnown reports whether a request has a valid token.
func (s *Server) isKnown(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")])
}

// answer handles a request. If it returns neither an answer nor an error, it has already written the response.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) (object, error) {
	name, values := match(r)
	switch {
	case !s.isKnown(r):
		return nil, &failure{http.StatusUnauthorized, codeNobody, "the token is not known, or has ended", "", ""}
	case name == "":
		return nil, &failure{http.StatusNotFound, codeNotFound, "Not Found", "", ""}
	case name != "GetLocations" && values["stack_id"] != s.Stack:
		return nil, &failure{http.StatusForbidden, codeForbidden, "the client has no right to the stack", "", ""}
	}
	for key := range r.URL.Query() {
		if !slices.Contains(described().Operations[name].Query, key) {
			return nil, invalid(key, "there is no such parameter")
		}
	}
	switch name {
	case "GetLocations":
		var all []object
		for _, city := range s.Cities {
			all = append(all, object{"cityCode": city, "name": city})
		}
		return s.page(r, all)
	case "GetWorkloads":
		return s.list(r)
	case "CreateWorkload":
		return s.create(r)
	}
	one, seen, err := s.find(r.Context(), values["workload_id"])
	if err != nil {
		return nil, err
	}
	switch name {
	case "GetWorkload":
		return object{"workload": one.shown(s.Stack)}, nil
	case "GetWorkloadInstances":
		return s.page(r, []object{s.instance(one, seen)})
	case "DeleteWorkload":
		err := s.Fleet.Stop(r.Context(), one.id, one.grace)
		if err == nil || errdefs.IsNotFound(err) {
			s.setDeleted(one.id)
			w.WriteHeader(http.StatusNoContent)
			err = nil
		}
		return nil, err
	}
	if values["instance_name"] != s.nameOf(one) {
		return nil, notFound("the workload has no instance %s", values["instance_name"])
	}
	if name == "GetLogs" {
		return nil, s.log(w, r, one)
	}
	return object{"instance": s.instance(one, seen)}, nil
}

// setDeleted records the first request to delete a workload.
func (s *Server) setDeleted(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workloads {
		if w.id == id && w.deleted.IsZero() {
			w.deleted = time.Now()
		}
	}
}

// find returns a copy of the workload with an ID or a slug: other requests may change the workload meanwhile.
func (s *Server) find(ctx context.Context, id string) (*workload, emulator.Seen, error) {
	s.mu.Lock()
	i := slices.IndexFunc(s.workloads, func(w *workload) bool { return w.id == id || w.slug == id })
	if i < 0 {
		s.mu.Unlock()
		return nil, emulator.Seen{}, notFound("there is no workload %s", id)
	}
	w := *s.workloads[i]
	s.mu.Unlock()
	seen, err := s.Fleet.Get(ctx, w.id)
	if errdefs.IsNotFound(err) {
		return nil, seen, notFound("there is no workload %s", id)
	}
	return &w, seen, err
}

// list answers GetWorkloads. It removes workloads whose containers have gone.
func (s *Server) list(r *http.Request) (object, error) {
	all, err := s.Fleet.List(r.Context())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workloads = slices.DeleteFunc(s.workloads, func(w *workload) bool {
		_, err := s.Fleet.Get(r.Context(), w.id)
		return errdefs.IsNotFound(err) && time.Since(w.created) > time.Second // a new workload may not be in the fleet yet
	})
	var out []object
	for _, seen := range all {
		if i := slices.IndexFunc(s.workloads, func(w *workload) bool { return w.id == seen.ID }); i >= 0 {
			out = append(out, s.workloads[i].shown(s.Stack))
		}
	}
	return s.page(r, out)
}

// page cuts a list.
func (s *Server) page(r *http.Request, all []object) (object, error) {
	query := r.URL.Query()
	most := s.MostItems
	if most == 0 {
		most = 100
	}
	if query.Get("page_request.filter") != "" || query.Get("page_request.sort_by") != "" {
		return nil, invalid("page_request", "this server neither filters nor sorts")
	}
	if text := query.Get("page_request.first"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, invalid("page_request.first", "want a number")
		}
		most = min(most, n)
	}
	from := 0
	if text := query.Get("page_request.after"); text != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(text, "cursor-"))
		if err != nil {
			return nil, invalid("page_request.after", "want a cursor")
		}
		from = min(n, len(all))
	}
	to := min(from+most, len(all))
	return object{
		"pageInfo": object{"totalCount": strconv.Itoa(len(all)), "hasNextPage": to < len(all), "hasPreviousPage": from > 0, "startCursor": fmt.Sprint("cursor-", from), "endCursor": fmt.Sprint("cursor-", to)},
		"results":  append([]object{}, all[from:to]...),
	}, nil
}

// create makes a workload.
func (s *Server) create(r *http.Request) (object, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	if err != nil {
		return nil, err
	}
	if err := Check(body); err != nil {
		at, why, _ := strings.Cut(err.Error(), ": ")
		return nil, invalid(strings.TrimPrefix(at, "."), "%s", why)
	}
	var request struct{ Workload *spec }
	var sent struct{ Workload object }
	if err := errors.Join(json.Unmarshal(body, &request), json.Unmarshal(body, &sent)); err != nil {
		return nil, invalid("body", "%v", err)
	}
	if request.Workload == nil {
		return nil, invalid("workload", "is missing")
	}
	if err := s.brokenRule(request.Workload); err != nil {
		return nil, err
	}
	w, err := s.register(request.Workload, sent.Workload)
	if err != nil {
		return nil, err
	}
	if err := s.Fleet.Start(r.Context(), emulator.Group{ID: w.id, Spec: request.Workload.pod()}); err != nil {
		s.Lose(w.id)
		if errdefs.IsInvalidInput(err) {
			return nil, invalid("workload.spec", "%v", err)
		}
		return nil, err
	}
	return object{"workload": w.shown(s.Stack)}, nil
}

// register adds a workload, and returns a copy of it. Each slug is given once.
func (s *Server) register(of *spec, sent object) (*workload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.workloads, func(w *workload) bool { return w.slug == of.Slug }) {
		return nil, &failure{http.StatusConflict, codeExists, "there is a workload " + of.Slug, "", ""}
	}
	if s.Quota > 0 && len(s.workloads) >= s.Quota {
		return nil, &failure{http.StatusTooManyRequests, codeExhausted, "the stack has as many workloads as it may have", "", ""}
	}
	s.made++
	w := &workload{
		id: fmt.Sprintf("wl-%08d", s.made), slug: of.Slug, sent: sent, created: time.Now(), grace: of.grace(), consoles: of.Metadata.Annotations[remoteManagement] == "true",
		labels: map[string]any{},
	}
	for key, value := range of.Metadata.Labels {
		w.labels[key] = value
	}
	s.workloads = append(s.workloads, w)
	return new(*w), nil
}
