// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/fields"
)

//go:embed fields.json
var description []byte

var models = sync.OnceValue(func() fields.Models { return fields.Parse(description) })

// apiVersion is the version of the description.
const apiVersion = "2024-07-01.20.0"

// Deny makes the service forbid operations.
func (s *Server) Deny(operations ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range operations {
		s.denied[o] = true
	}
}

// Operation returns the operation of a request, for emulator.NewFront.
func Operation(r *http.Request, _ []byte) string {
	if strings.HasPrefix(r.URL.Path, ContainerPath+"/") || r.URL.Path == ContainerPath {
		return storeOperation(r)
	}
	if strings.Contains(r.URL.Path, "/oauth2/") || strings.Contains(r.URL.Path, "discovery/") || strings.Contains(r.URL.Path, ".well-known") {
		return "Token"
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	shape := []string{r.Method}
	for i, p := range parts {
		if i%2 == 0 {
			shape = append(shape, p)
		} else {
			shape = append(shape, "*")
		}
	}
	return operations[strings.Join(shape, " ")]
}

// operations are the supported operations of the data plane, by method and path.
var operations = map[string]string{
	"POST jobs": "CreateJob", "GET jobs *": "GetJob", "DELETE jobs *": "DeleteJob",
	"GET jobs * tasks": "ListTasks", "POST jobs * tasks": "CreateTask", "GET jobs * tasks *": "GetTask", "DELETE jobs * tasks *": "DeleteTask",
	"POST jobs * tasks * terminate": "TerminateTask", "GET pools *": "GetPool", "GET nodecounts": "ListPoolNodeCounts", "GET pools * nodes *": "GetNode",
	"POST pools * nodes * users": "CreateNodeUser", "PUT pools * nodes * users *": "ReplaceNodeUser", "GET pools * nodes * remoteloginsettings": "GetNodeRemoteLoginSettings",
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Login(w, r) {
		return
	}
	operation := Operation(r, nil)
	s.mu.Lock()
	denied := s.denied[operation]
	s.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, ContainerPath) {
		s.Store.serve(w, r, denied)
		return
	}
	if code, message := s.Known(r, []string{Batch, Batch + "/"}); code != "" {
		refuse(w, http.StatusUnauthorized, "AuthenticationFailed", message)
		return
	}
	switch {
	case denied:
		refuse(w, http.StatusForbidden, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation.")
	case operation == "":
		refuse(w, http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
	case r.URL.Query().Get("api-version") != apiVersion:
		refuse(w, http.StatusBadRequest, "UnsupportedRequestVersion", "The value of api-version is not supported.")
	case (r.Method == http.MethodPost || r.Method == http.MethodPut) && operation != "TerminateTask" && r.Header.Get("Content-Type") != "application/json; odata=minimalmetadata":
		refuse(w, http.StatusUnsupportedMediaType, "InvalidHeaderValue", "Content-Type: want application/json; odata=minimalmetadata")
	default:
		s.answer(w, r, operation, strings.Split(strings.Trim(r.URL.Path, "/"), "/"))
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, operation string, path []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var j *job
	var t *task
	var n *node
	if path[0] == "jobs" && len(path) > 1 {
		if j = s.job(path[1]); j == nil {
			refuse(w, http.StatusNotFound, "JobNotFound", "The specified job does not exist.")
			return
		}
		if len(path) > 3 {
			if t = j.task(path[3]); t == nil {
				refuse(w, http.StatusNotFound, "TaskNotFound", "The specified task does not exist.")
				return
			}
		}
	}
	if path[0] == "pools" && path[1] != s.Pool.ID {
		refuse(w, http.StatusNotFound, "PoolNotFound", "The specified pool does not exist.")
		return
	}
	if path[0] == "pools" && len(path) > 3 {
		i := slices.IndexFunc(s.nodes, func(n *node) bool { return n.id == path[3] })
		if i < 0 {
			refuse(w, http.StatusNotFound, "NodeNotFound", "The specified node does not exist.")
			return
		}
		n = s.nodes[i]
	}
	switch operation {
	case "CreateJob":
		s.createJob(w, r)
	case "GetJob":
		give(w, map[string]any{"id": j.id, "state": "active", "poolInfo": map[string]any{"poolId": s.Pool.ID}})
	case "DeleteJob":
		for _, t := range j.tasks {
			s.end(t, "deleted")
		}
		s.jobs = slices.DeleteFunc(s.jobs, func(other *job) bool { return other == j })
		w.WriteHeader(http.StatusAccepted)
	case "ListTasks":
		s.listTasks(w, r, j)
	case "CreateTask":
		s.createTask(w, r, j)
	case "GetTask":
		s.getTask(w, r, t)
	case "DeleteTask":
		s.end(t, "deleted")
		j.tasks = slices.DeleteFunc(j.tasks, func(other *task) bool { return other == t })
		w.WriteHeader(http.StatusOK)
	case "TerminateTask":
		if t.state == completed {
			refuse(w, http.StatusConflict, "TaskCompleted", "The specified task is already in a completed state.")
			return
		}
		s.end(t, "TaskEnded")
		w.WriteHeader(http.StatusNoContent)
	case "GetPool":
		give(w, s.pool())
	case "ListPoolNodeCounts":
		give(w, map[string]any{"value": []any{map[string]any{"poolId": s.Pool.ID, "dedicated": s.counts(), "lowPriority": map[string]int{"total": 0}}}})
	case "GetNode":
		give(w, map[string]any{"id": n.id, "state": n.state})
	case "CreateNodeUser":
		s.changeUser(w, r, n, "")
	case "ReplaceNodeUser":
		s.changeUser(w, r, n, path[5])
	case "GetNodeRemoteLoginSettings":
		s.remoteLogin(w, n)
	}
}

// idForm matches the IDs of jobs and tasks.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// read reads the body of a model, and answers if the body is wrong.
func read(w http.ResponseWriter, r *http.Request, model string, into any) bool {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "InvalidRequestBody", err.Error())
		return false
	}
	if problems := models().Check(model, data); len(problems) > 0 {
		refuse(w, http.StatusBadRequest, "InvalidPropertyValue", strings.Join(problems, "; "))
		return false
	}
	if len(data) > 1<<20 { // "The request body is too large": 1 MB, by the page of task collections, 2023-06-29
		refuse(w, http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "The size of the request body exceeds the maximum size permitted.")
		return false
	}
	if err := json.Unmarshal(data, into); err != nil {
		refuse(w, http.StatusBadRequest, "InvalidRequestBody", err.Error())
		return false
	}
	return true
}

func (s *Server) createJob(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		ID       string
		PoolInfo struct{ PoolID string }
	}
	if !read(w, r, "CreateJobContent", &asked) {
		return
	}
	quota := s.Quota
	if quota == 0 {
		quota = 100
	}
	switch {
	case !idForm.MatchString(asked.ID):
		refuse(w, http.StatusBadRequest, "InvalidPropertyValue", "id: "+asked.ID)
	case s.job(asked.ID) != nil:
		refuse(w, http.StatusConflict, "JobExists", "The specified job already exists.")
	case asked.PoolInfo.PoolID != s.Pool.ID:
		refuse(w, http.StatusConflict, "PoolNotFound", "The specified pool does not exist.")
	case len(s.jobs) >= quota:
		refuse(w, http.StatusConflict, "ActiveJobAndScheduleQuotaReached", "The active job and job schedule quota has been reached.")
	default:
		s.jobs = append(s.jobs, &job{id: asked.ID})
		w.WriteHeader(http.StatusCreated)
	}
}

// durationForm matches the ISO 8601 durations of this provider and similar clients.
var durationForm = regexp.MustCompile(`^P(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?$`)

func (s *Server) createTask(w http.ResponseWriter, r *http.Request, j *job) {
	var asked Created
	if !read(w, r, "CreateTaskContent", &asked) {
		return
	}
	problem := ""
	for _, f := range asked.ResourceFiles {
		if f.FilePath == "" || f.HTTPURL == "" {
			problem = "resourceFiles: httpUrl and filePath are needed together"
		}
		if f.IdentityReference.ResourceID != "" && f.IdentityReference.ResourceID != s.Pool.Identity {
			problem = "resourceFiles: identityReference: the identity is not assigned to the pool"
		}
	}
	for _, d := range []string{asked.Constraints.RetentionTime, asked.Constraints.MaxWallClockTime} {
		if d != "" && !durationForm.MatchString(d) {
			problem = "constraints: " + d
		}
	}
	switch {
	case !idForm.MatchString(asked.ID):
		problem = "id: " + asked.ID
	case len(asked.DisplayName) > 1024:
		problem = "displayName: it is too long"
	case asked.RequiredSlots > s.Pool.Slots || asked.RequiredSlots < 0:
		problem = fmt.Sprintf("requiredSlots: %d: the pool has %d slots a node", asked.RequiredSlots, s.Pool.Slots)
	}
	switch {
	case problem != "":
		refuse(w, http.StatusBadRequest, "InvalidPropertyValue", problem)
	case j.task(asked.ID) != nil:
		refuse(w, http.StatusConflict, "TaskExists", "The specified task already exists.")
	default:
		t := &task{Created: asked, job: j, state: active, created: time.Now(), changed: time.Now()}
		t.RequiredSlots = max(1, t.RequiredSlots)
		j.tasks = append(j.tasks, t)
		s.schedule()
		w.WriteHeader(http.StatusCreated)
	}
}

func (s *Server) getTask(w http.ResponseWriter, r *http.Request, t *task) {
	if names, ok := chosen(w, r); ok {
		give(w, t.show(names))
	}
}

// chosen are the names of $select; nil for all.
func chosen(w http.ResponseWriter, r *http.Request) (names []string, ok bool) {
	if text := r.URL.Query().Get("$select"); text != "" {
		names = strings.Split(text, ",")
	}
	for _, name := range names {
		if _, is := models()["Task"][name]; !is {
			refuse(w, http.StatusBadRequest, "InvalidQueryParameterValue", "$select: "+name)
			return nil, false
		}
	}
	return names, true
}

func (s *Server) listTasks(w http.ResponseWriter, r *http.Request, j *job) {
	names, ok := chosen(w, r)
	if !ok {
		return
	}
	var shown []*task
	for _, t := range j.tasks {
		if time.Since(t.created) >= s.Lag {
			shown = append(shown, t)
		}
	}
	page := s.Page
	if page == 0 {
		page = 1000
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("$skiptoken")) // none is the first
	from = min(max(from, 0), len(shown))
	to := min(from+page, len(shown))
	all := []any{}
	for _, t := range shown[from:to] {
		all = append(all, t.show(names))
	}
	out := map[string]any{"value": all}
	if to < len(shown) {
		next := url.URL{Scheme: "https", Host: r.Host, Path: r.URL.Path}
		q := r.URL.Query()
		q.Set("$skiptoken", strconv.Itoa(to))
		next.RawQuery = q.Encode()
		out["odata.nextLink"] = next.String()
	}
	give(w, out)
}

func (s *Server) pool() map[string]any {
	vm := map[string]any{"nodeAgentSKUId": "batch.node.ubuntu 22.04", "imageReference": map[string]any{"publisher": "canonical"}}
	if s.Pool.Containers {
		vm["containerConfiguration"] = map[string]any{"type": "dockerCompatible"}
	}
	if s.Pool.Windows {
		vm["nodeAgentSKUId"] = "batch.node.windows amd64"
	}
	out := map[string]any{
		"id": s.Pool.ID, "state": "active", "allocationState": "steady", "vmSize": s.Pool.VMSize, "taskSlotsPerNode": s.Pool.Slots,
		"virtualMachineConfiguration": vm, "enableAutoScale": s.Pool.AutoScale,
	}
	if !s.Pool.AutoScale {
		out["targetDedicatedNodes"] = len(s.nodes)
	}
	if s.Pool.SSH {
		out["networkConfiguration"] = map[string]any{"endpointConfiguration": map[string]any{"inboundNATPools": []any{map[string]any{
			"name": "ssh", "protocol": "tcp", "backendPort": 22, "frontendPortRangeStart": 15000, "frontendPortRangeEnd": 15100,
		}}}}
	}
	if s.Pool.Identity != "" {
		out["identity"] = map[string]any{"type": "UserAssigned", "userAssignedIdentities": []any{map[string]any{"resourceId": s.Pool.Identity}}}
	}
	var errs []any
	for _, code := range s.Pool.ResizeErrors {
		errs = append(errs, map[string]any{"code": code, "message": "the pool could not be resized"})
	}
	if errs != nil {
		out["resizeErrors"] = errs
	}
	return out
}

func give(w http.ResponseWriter, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json;odata=minimalmetadata")
	_, _ = w.Write(data) // the client may have disconnected
}

// refuse answers with an error in the form of Batch.
func refuse(w http.ResponseWriter, status int, code, message string) {
	data, err := json.Marshal(map[string]any{"code": code, "message": map[string]string{"lang": "en-US", "value": message + "\nRequestId:" + rand.Text()}})
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json;odata=minimalmetadata")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// Throttle answers as Batch does to too many requests.
func Throttle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "2")
	refuse(w, http.StatusTooManyRequests, "TooManyRequests", "Too many requests.")
}

// Down answers as Batch does when it is too busy.
func Down(w http.ResponseWriter, _ *http.Request) {
	refuse(w, http.StatusServiceUnavailable, "ServerBusy", "The server is currently unable to receive requests.")
}

// changeUser makes a user of a machine, or replaces its key. s.mu is held.
func (s *Server) changeUser(w http.ResponseWriter, r *http.Request, n *node, name string) {
	var asked struct {
		Name, SSHPublicKey string
		IsAdmin            bool
	}
	if name != "" {
		u, is := n.users[name]
		switch {
		case !is:
			refuse(w, http.StatusNotFound, "NodeUserNotFound", "The specified node user does not exist.")
		case read(w, r, "UpdateNodeUserContent", &asked):
			u.key = asked.SSHPublicKey
			n.users[name] = u
			w.WriteHeader(http.StatusOK)
		}
		return
	}
	switch {
	case !read(w, r, "CreateNodeUserContent", &asked):
	case n.state != "idle" && n.state != "running":
		refuse(w, http.StatusConflict, "NodeNotReady", "The specified node is not in the idle or running state.")
	case n.users[asked.Name] != (nodeUser{}):
		refuse(w, http.StatusConflict, "NodeUserExists", "The specified node user already exists.")
	default:
		n.users[asked.Name] = nodeUser{asked.SSHPublicKey, asked.IsAdmin}
		w.WriteHeader(http.StatusCreated)
	}
}

// remoteLogin returns the address of the SSH server of a machine, and starts this server. s.mu is held.
func (s *Server) remoteLogin(w http.ResponseWriter, n *node) {
	if !s.Pool.SSH {
		refuse(w, http.StatusConflict, "OperationInvalidForCurrentState", "The pool has no inbound NAT pool for it.") // the code of Batch is not published
		return
	}
	if n.listener == nil {
		if err := s.serveSSH(n); err != nil {
			refuse(w, http.StatusInternalServerError, "InternalError", err.Error())
			return
		}
	}
	at, _ := n.listener.Addr().(*net.TCPAddr)
	give(w, map[string]any{"remoteLoginIPAddress": at.IP.String(), "remoteLoginPort": at.Port})
}
