// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// The paths of the services, and of the console proxy.
const (
	identityPath = "/identity/v3"
	// Path is the path of Zun.
	Path        = "/container/v1/"
	consolePath = "/wsproxy/"
)

// newest is the newest microversion of Zun.
const newest = "1.40"

// Image has the values that Zun takes from an image for a container without them.
type Image struct{ Entrypoint, Command []string }

// Server is Zun in one project of one region. The exported fields must not change while it serves.
type Server struct {
	Gate
	// Fleet runs the containers.
	Fleet *emulator.Fleet
	// Context is the context of work after an answer.
	Context context.Context
	// Sync is the interval at which the server refreshes the states of containers in lists; 0 means a minute, as in Zun.
	Sync time.Duration
	// Slow is the delay between the answer to a request and its effect.
	Slow time.Duration
	// ExecuteTimeout is the time that Zun waits for a command; 0 means 5 s, as in Zun.
	ExecuteTimeout time.Duration
	// Quota is the maximum number of containers of the project; 0 means any number.
	Quota int
	// Images are the existing images; nil means that all exist, without entrypoint and command.
	Images map[string]Image
	// Networks and SecurityGroups exist in the project; nil means that all exist.
	Networks, SecurityGroups []string
	// Newest is the newest microversion; "" is 1.40.
	Newest string
	// Capsules lets capsules run, as on a cloud of 2023 with an old containerd.
	Capsules bool
	// Console is the address of the console proxy; "" means this server by ws.
	Console string

	mu         sync.Mutex
	records    []*record           // guarded by mu; the oldest first
	registries []*registry         // guarded by mu
	sessions   map[string]*session // guarded by mu; keyed by their tokens
	synced     time.Time           // guarded by mu
	byRun      map[string]*record  // guarded by mu; keyed by the IDs of groups
}

type object = map[string]any

// failure is an error answer of Zun.
type failure struct {
	status        int
	code, message string
}

func (f *failure) Error() string { return f.code + ": " + f.message }

func fail(status int, code, format string, args ...any) error {
	return &failure{status, code, fmt.Sprintf(format, args...)}
}

// Refuse returns a handler that answers every request with an error, for faults of a Front.
func Refuse(status int, code, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { refuse(w, &failure{status, code, message}) }
}

func refuse(w http.ResponseWriter, f *failure) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(object{"errors": []object{
		{"request_id": "", "code": "container." + f.code, "status": f.status, "title": f.message, "detail": f.message, "links": []object{}},
	}})
}

// Operation returns the operation of a request, for a Front, such as Login, ListContainers, CreateContainer,
// GetContainer, start or logs.
func Operation(r *http.Request, _ []byte) string {
	path, ofZun := strings.CutPrefix(r.URL.Path, Path)
	if !ofZun {
		if strings.HasPrefix(r.URL.Path, consolePath) {
			return "Session"
		}
		return "Login"
	}
	parts := strings.Split(path, "/")
	if len(parts) > 2 {
		return parts[2]
	}
	kind := map[string]string{"containers": "Container", "capsules": "Capsule", "registries": "Registry"}[parts[0]]
	switch {
	case r.Method == http.MethodPost:
		return "Create" + kind
	case r.Method == http.MethodDelete:
		return "Delete" + kind
	case len(parts) == 1:
		return "List" + kind + "s"
	}
	return "Get" + kind
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func newHex() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
	return hex.EncodeToString(b[:])
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ofZun := strings.CutPrefix(r.URL.Path, Path)
	switch {
	case strings.HasPrefix(r.URL.Path, consolePath):
		s.serveSession(w, r)
		return
	case strings.TrimSuffix(r.URL.Path, "/")+"/v1/" == Path: // clients of OpenStack look for the newest microversion there
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.versions(r))
		return
	case !ofZun:
		s.serveIdentity(w, r)
		return
	}
	w.Header().Set("X-Openstack-Request-Id", "req-"+newUUID())
	answer, status, err := s.answer(w.Header(), r, strings.Split(path, "/"))
	if err != nil {
		var f *failure
		if !errors.As(err, &f) {
			f = &failure{http.StatusInternalServerError, "server", err.Error()}
		}
		refuse(w, f)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// answer returns the answer of Zun, with its status.
func (s *Server) answer(header http.Header, r *http.Request, path []string) (answer any, status int, err error) {
	if !s.knows(r.Header.Get("X-Auth-Token")) {
		return nil, 0, fail(http.StatusUnauthorized, "unauthorized", "The request you have made requires authentication.")
	}
	if err := s.checkVersion(header, r.Header.Get("OpenStack-API-Version")); err != nil {
		return nil, 0, err
	}
	var body any
	if r.Method == http.MethodPost || r.Method == http.MethodPatch {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil && r.ContentLength > 0 {
			return nil, 0, fail(http.StatusBadRequest, "invalid-value", "the body is no JSON")
		}
	}
	status = http.StatusOK
	o, _ := body.(object)
	query := r.URL.Query()
	switch path[0] {
	case "registries":
		return s.serveRegistries(r.Method, path[1:], query, o)
	case "capsules":
		return s.serveCapsules(r, path[1:], o)
	case "containers":
	default:
		return nil, 0, fail(http.StatusNotFound, "not-found", "there is no %s", path[0])
	}
	switch {
	case len(path) == 1 && r.Method == http.MethodGet:
		answer, err = s.list(r, false)
		return answer, status, err
	case len(path) == 1 && r.Method == http.MethodPost:
		answer, err = s.create(query, o)
		return answer, http.StatusAccepted, err
	}
	rec, err := s.find(path[1], false)
	if err != nil {
		return nil, 0, err
	}
	operation := "get"
	if len(path) > 2 {
		operation = path[2]
	}
	if r.Method == http.MethodDelete {
		operation = "containers.delete"
	}
	if err := checkQuery(operation, query); err != nil {
		return nil, 0, fail(http.StatusBadRequest, "schema-validation-error", "%v", err)
	}
	return s.act(header.Get("X-Openstack-Request-Id"), r, rec, operation, path, query)
}

// versions describes the versions of the API, without a token.
func (s *Server) versions(r *http.Request) object {
	v1 := object{"id": "v1", "status": "CURRENT", "min_version": "1.1", "max_version": cmp.Or(s.Newest, newest), "links": []object{{"rel": "self", "href": scheme(r) + "://" + r.Host + "/v1/"}}}
	return object{"name": "OpenStack Zun API", "description": "the emulator of Zun", "versions": []object{v1}, "default_version": v1}
}

// checkVersion refuses a microversion that this Zun does not know.
func (s *Server) checkVersion(header http.Header, asked string) error {
	newest := cmp.Or(s.Newest, newest)
	header.Set("OpenStack-API-Minimum-Version", "container 1.1")
	header.Set("OpenStack-API-Maximum-Version", "container "+newest)
	service, version, found := strings.Cut(asked, " ")
	if asked == "" {
		service, version, found = "container", "1.1", true
	}
	if version == "latest" {
		version = newest
	}
	minor := func(v string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(v, "1."))
		if err != nil {
			return -1
		}
		return n
	}
	if !found || service != "container" || minor(version) < 1 || minor(version) > minor(newest) {
		return fail(http.StatusNotAcceptable, "not-acceptable", "Version %s was requested but the minor version is not supported by this service. The supported version range is: [container 1.1, container %s].", asked, newest)
	}
	header.Set("OpenStack-API-Version", "container "+version)
	return nil
}

// find returns a container or capsule by its ID or name. Two with the same name are a conflict.
func (s *Server) find(ident string, capsule bool) (*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*record
	for _, rec := range s.records {
		if rec.capsule == capsule && (rec.uuid == ident || rec.name == ident) {
			found = append(found, rec)
		}
	}
	switch {
	case len(found) == 0:
		return nil, fail(http.StatusNotFound, "container-not-found", "Container %s could not be found.", ident)
	case len(found) > 1:
		return nil, fail(http.StatusConflict, "conflict", "Multiple containers exist with same name. Please use the container uuid instead.")
	}
	return found[0], nil
}

// filters are the filters of a list of containers.
var filters = []string{"name", "image", "project_id", "user_id", "memory", "host", "task_state", "status", "auto_remove"}

// list returns a page of the containers or capsules, in their last refreshed states.
func (s *Server) list(r *http.Request, capsules bool) (object, error) {
	query := r.URL.Query()
	for name := range query {
		if !capsules && !slices.Contains(append([]string{"limit", "marker", "sort_dir", "sort_key", "resource_url", "expand"}, filters...), name) {
			return nil, fail(http.StatusBadRequest, "invalid-value", "Unknown parameters: %s", name)
		}
	}
	limit, err := limitOf(query)
	if err != nil {
		return nil, err
	}
	sync := s.Sync
	if sync == 0 {
		sync = time.Minute
	}
	s.mu.Lock()
	due := time.Since(s.synced) >= sync
	if due {
		s.synced = time.Now()
	}
	all := slices.Clone(s.records)
	s.mu.Unlock()
	if due {
		for _, rec := range all {
			s.refresh(r.Context(), rec)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out, after, next := []object{}, query.Get("marker") == "", ""
	for _, rec := range s.records {
		if rec.capsule != capsules {
			continue
		}
		if !after {
			after = rec.uuid == query.Get("marker")
			continue
		}
		if name := query.Get("name"); !capsules && name != "" && rec.name != name || query.Get("status") != "" && rec.status != query.Get("status") {
			continue
		}
		if out = append(out, rec.show()); len(out) == limit { // Zun does not check whether there are more
			next = "http://" + r.Host + r.URL.Path + "?marker=" + rec.uuid
			break
		}
	}
	answer := object{"containers": out, "next": nil}
	if capsules {
		answer = object{"capsules": out, "next": nil}
	}
	if next != "" {
		answer["next"] = next
	}
	return answer, nil
}

// limitOf is the size of a page: 1000 at most.
func limitOf(query url.Values) (int, error) {
	if !query.Has("limit") {
		return 1000, nil
	}
	n, err := strconv.Atoi(query.Get("limit"))
	if err != nil || n < 1 {
		return 0, fail(http.StatusBadRequest, "invalid-value", "Limit must be positive")
	}
	return min(n, 1000), nil
}

// Report handles a report of the runner. Pass it to the runner's NotifyPods.
func (s *Server) Report(pod *corev1.Pod) {
	s.Fleet.Report(pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	if rec := s.byRun[pod.Name]; rec != nil {
		rec.reported(pod.Name, pod.Status.DeepCopy())
	}
}

// Containers returns the IDs of the containers and capsules with a label, the oldest first, and the IDs of their
// groups at the runner.
func (s *Server) Containers(key, value string) (ids, runs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rec := range s.records {
		if rec.labels[key] == value {
			ids = append(ids, rec.uuid)
			for _, one := range rec.runs {
				runs = append(runs, one.id)
			}
		}
	}
	return ids, runs
}

// Left returns the leftovers, by kind, for tests: the IDs of containers and capsules, the names of registries,
// and unopened sessions.
func (s *Server) Left() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := map[string][]string{}
	for _, rec := range s.records {
		kind := map[bool]string{true: "capsules", false: "containers"}[rec.capsule]
		left[kind] = append(left[kind], rec.uuid)
	}
	for _, r := range s.registries {
		left["registries"] = append(left["registries"], r.name)
	}
	for token, c := range s.sessions {
		if !c.used {
			left["sessions"] = append(left["sessions"], token)
		}
	}
	return left
}

// Registries returns the names of all registries.
func (s *Server) Registries() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.registries {
		names = append(names, r.name)
	}
	return names
}

// Lose forgets a container, as if another user had removed it. Its runs are not stopped.
func (s *Server) Lose(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = slices.DeleteFunc(s.records, func(rec *record) bool { return rec.uuid == id })
}

// Set changes the state of a container, as if by an event outside this API.
func (s *Server) Set(id, status, reason, task string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rec := range s.records {
		if rec.uuid == id {
			rec.status, rec.reason, rec.task, rec.fixed = status, reason, task, true
		}
	}
}
