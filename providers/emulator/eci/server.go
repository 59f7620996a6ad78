// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// Server is ECI in one region, for one account. The exported fields must not change while it serves.
type Server struct {
	Gate
	// Region is the only region.
	Region string
	// VSwitches and SecurityGroups exist in the account; nil means that all exist.
	VSwitches, SecurityGroups []string
	// Quota is the maximum number of groups of the account; 0 means any number.
	Quota int
	// Fleet runs the containers.
	Fleet *emulator.Fleet
	// Plain lets sessions use messages without a channel, in the way of an older public client.
	Plain atomic.Bool

	starts   sync.Mutex // held while groups are started again
	mu       sync.Mutex
	groups   []*group            // guarded by mu; the oldest first
	made     int                 // guarded by mu; number of groups so far
	tokens   map[string]string   // guarded by mu; the IDs of groups by the tokens of their creates, including deleted groups
	sessions map[string]*session // guarded by mu; keyed by the secret of their addresses
}

type object = map[string]any

// group is a container group.
type group struct {
	id, name, token string
	form            url.Values // of the create
	tags            map[string]string
	created         time.Time
	spec            corev1.PodSpec
	files           map[string]map[string][]byte
	changed         time.Time // the states of containers
	run             string    // the ID in the fleet
	restarts        int       // number of earlier runs
	again           bool      // the group starts again when its containers have ended
}

// failure is an error answer of the service.
type failure struct {
	status        int
	code, message string
}

func (f *failure) Error() string { return f.code + ": " + f.message }

func newFailure(status int, code, format string, args ...any) error {
	return &failure{status, code, fmt.Sprintf(format, args...)}
}

// Refuse returns a handler that answers every request with an error, for faults of a Front.
func Refuse(status int, code, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { refuseRequest(w, &failure{status, code, message}) }
}

// Operation returns the operation of a request, for a Front.
func Operation(r *http.Request, _ []byte) string {
	if r.URL.Path == sessionPath {
		return "Session"
	}
	return r.Header.Get("X-Acs-Action")
}

func refuseRequest(w http.ResponseWriter, f *failure) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(object{"RequestId": "emulated", "HostId": "eci.emulator", "Code": f.code, "Message": f.message})
}

// Report handles a report of the runner. Pass it to the runner's NotifyPods.
func (s *Server) Report(pod *corev1.Pod) {
	s.Fleet.Report(pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		if g.run == pod.Name {
			g.changed = time.Now()
		}
	}
}

// Run returns the present ID of a group in the fleet.
func (s *Server) Run(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.byID(id); g != nil {
		return g.run
	}
	return id
}

// byID returns the group with an ID, or nil. The caller holds s.mu.
func (s *Server) byID(id string) *group {
	for _, g := range s.groups {
		if g.id == id {
			return g
		}
	}
	return nil
}

// Groups returns the IDs of the groups with a tag, the oldest first.
func (s *Server) Groups(key, value string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		if g.tags[key] == value {
			ids = append(ids, g.id)
		}
	}
	return ids
}

// Left returns the leftovers, by kind, for tests: the IDs of groups, and unopened sessions of exec.
func (s *Server) Left() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := map[string][]string{}
	for _, g := range s.groups {
		left["groups"] = append(left["groups"], g.id)
	}
	for secret := range s.sessions {
		left["sessions"] = append(left["sessions"], secret)
	}
	return left
}

// Lose forgets a group, as if another client had removed it. Its containers are not stopped.
func (s *Server) Lose(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = slices.DeleteFunc(s.groups, func(g *group) bool { return g.id == id })
}

// forgetGroup forgets a group that could not be made, with its token.
func (s *Server) forgetGroup(g *group) {
	s.Lose(g.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, g.token)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == sessionPath {
		s.serveSession(w, r)
		return
	}
	answer, err := s.answerRequest(r)
	if err != nil {
		var f *failure
		switch e := err.(type) { //nolint:errorlint // answer returns the error unwrapped
		case *failure:
			f = e
		default:
			f = &failure{http.StatusInternalServerError, "InternalError", err.Error()}
		}
		refuseRequest(w, f)
		return
	}
	answer["RequestId"] = "emulated"
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// readers are the operations with empty answers, instead of a refusal, for users without the right to read.
var readers = map[string]object{
	"DescribeContainerGroups":      {"ContainerGroups": []object{}, "TotalCount": 0},
	"DescribeContainerGroupStatus": {"Data": []object{}, "TotalCount": 0},
}

func (s *Server) answerRequest(r *http.Request) (object, error) {
	body := readBody(r)
	if code := s.Refuses(r, body); code != "" {
		return nil, newFailure(http.StatusForbidden, code, "the request is not let in")
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, newFailure(http.StatusBadRequest, "InvalidParameter", "the body is no form")
	}
	for name, values := range r.URL.Query() { // fields may be in both
		form[name] = append(form[name], values...)
	}
	action := r.Header.Get("X-Acs-Action")
	if err := Check(action, form); err != nil {
		code, message, _ := strings.Cut(err.Error(), ": ")
		return nil, newFailure(http.StatusBadRequest, code, "%s", message)
	}
	if got := form.Get("RegionId"); got != s.Region {
		return nil, newFailure(http.StatusNotFound, "InvalidRegionId.NotFound", "there is no region %s here", got)
	}
	if allowed := s.allowedActions(r); allowed != nil && !slices.Contains(allowed, "eci:"+action) {
		if nothing, ok := readers[action]; ok {
			return cloneObject(nothing), nil
		}
		return nil, newFailure(http.StatusForbidden, "Forbidden.RAM", "User not authorized to operate on the specified resource, or this API doesn't support RAM.")
	}
	switch action {
	case "CreateContainerGroup":
		return s.createGroup(r, form)
	case "DeleteContainerGroup":
		return s.deleteGroup(r, form)
	case "RestartContainerGroup":
		return s.restartGroup(r, form)
	case "DescribeContainerGroups":
		return s.answerGroups(r, form)
	case "DescribeContainerGroupStatus":
		return s.answerStatuses(r, form)
	case "DescribeContainerLog":
		return s.answerLog(r, form)
	case "DescribeMultiContainerGroupMetric":
		return s.answerMetrics(r, form)
	default: // Check allows no other operation
		return s.openExec(r, form)
	}
}

func cloneObject(o object) object {
	out := object{}
	for k, v := range o {
		out[k] = v
	}
	return out
}

// findGroup returns the group of a request.
func (s *Server) findGroup(form url.Values) (*group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.byID(form.Get("ContainerGroupId")); g != nil {
		return g, nil
	}
	return nil, newFailure(http.StatusNotFound, "ContainerGroup.NotFound", "there is no container group %s", form.Get("ContainerGroupId"))
}

// deleteGroup removes a group, within the grace period from its creation.
func (s *Server) deleteGroup(r *http.Request, form url.Values) (object, error) {
	g, err := s.findGroup(form)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	g.again = false
	s.mu.Unlock()
	return object{}, s.stop(r.Context(), g)
}

// restartGroup ends the containers of a group, and then starts them again:
// alibabacloud.com/help/en/eci/developer-reference/api-eci-2018-08-08-restartcontainergroup, 2025-10-17. Only a group in the states Pending
// and Running can be restarted, and it shows Restarting then. The page does not say how the containers end, whether they count the restart,
// nor which of its two codes a state gets: 403 InvalidAction does not mention states. The emulator uses the stricter interpretation:
// nothing is counted, and the containers wait in between.
func (s *Server) restartGroup(r *http.Request, form url.Values) (object, error) {
	g, err := s.findGroup(form)
	if err != nil {
		return nil, err
	}
	seen, err := s.Fleet.Get(r.Context(), s.Run(g.id))
	if err != nil && !errdefs.IsNotFound(err) {
		return nil, err
	}
	s.mu.Lock()
	state := shown{group: g, seen: seen, again: g.again}.groupStatus()
	may := state == "Pending" || state == "Running"
	g.again = g.again || may
	s.mu.Unlock()
	if !may {
		return nil, newFailure(http.StatusBadRequest, "IncorrectStatus", "the container group %s is %s", g.id, state)
	}
	return object{}, s.stop(r.Context(), g)
}

// stop stops the containers of a group, within the grace period from its creation.
func (s *Server) stop(ctx context.Context, g *group) error {
	grace := int64(30)
	if t := g.spec.TerminationGracePeriodSeconds; t != nil {
		grace = *t
	}
	s.touchGroup(g)
	if err := s.Fleet.Stop(ctx, s.Run(g.id), grace); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// startAgain starts restarted groups whose containers have ended.
func (s *Server) startAgain(ctx context.Context) error {
	s.starts.Lock()
	defer s.starts.Unlock()
	s.mu.Lock()
	groups := slices.Clone(s.groups)
	s.mu.Unlock()
	for _, g := range groups {
		s.mu.Lock()
		again, run, next := g.again, g.run, fmt.Sprintf("%s-%d", g.id, g.restarts+2)
		s.mu.Unlock()
		if !again {
			continue
		}
		if seen, err := s.Fleet.Get(ctx, run); err == nil && !seen.Gone {
			continue
		} else if err != nil && !errdefs.IsNotFound(err) {
			return err
		}
		if err := s.start(context.WithoutCancel(ctx), g, next); err != nil {
			return err
		}
		s.mu.Lock()
		stopped := !g.again // the group was deleted in between
		g.again, g.run, g.changed = false, next, time.Now()
		g.restarts++
		s.mu.Unlock()
		if stopped {
			if err := s.stop(ctx, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// touchGroup records that a group has changed.
func (s *Server) touchGroup(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.changed = time.Now()
}

// Created returns when a group was made, or the zero time if there is no group with this ID.
func (s *Server) Created(id string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.byID(id); g != nil {
		return g.created
	}
	return time.Time{}
}
