// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/entra"
)

// Place is the only place of the server.
type Place struct{ Subscription, ResourceGroup, Region string }

// Actions of the resource manager.
const (
	ActionRead   = "Microsoft.ContainerInstance/containerGroups/read"
	ActionWrite  = "Microsoft.ContainerInstance/containerGroups/write"
	ActionDelete = "Microsoft.ContainerInstance/containerGroups/delete"
	// ActionStop and ActionRestart are about all containers of a group.
	ActionStop    = "Microsoft.ContainerInstance/containerGroups/stop/action"
	ActionRestart = "Microsoft.ContainerInstance/containerGroups/restart/action"
	ActionLogs    = "Microsoft.ContainerInstance/containerGroups/containers/logs/read"
	ActionExec    = "Microsoft.ContainerInstance/containerGroups/containers/exec/action"
	ActionJoin    = "Microsoft.Network/virtualNetworks/subnets/join/action"
	// ActionAssign gives a resource an identity.
	ActionAssign = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action"
	// ActionSubnet reads the settings of a subnet, ActionUsage the used quota, and ActionMetrics the usage of
	// containers.
	ActionSubnet  = "Microsoft.Network/virtualNetworks/subnets/read"
	ActionUsage   = "Microsoft.ContainerInstance/locations/usages/read"
	ActionMetrics = "Microsoft.Insights/metrics/read"
	// ActionDelegate changes a subnet, and ActionStatus reads the progress of an operation. Other clients use
	// these actions.
	ActionDelegate = "Microsoft.Network/virtualNetworks/subnets/write"
	ActionStatus   = "Microsoft.ContainerInstance/locations/operations/read"
)

// apiVersion is the version of the description.
const apiVersion = "2023-05-01"

// Server is the service. Set its fields before the first request; Permit changes the role later.
type Server struct {
	*entra.Tokens
	// Role are the actions of the identity on the resource group. Nil means all.
	Role []string
	// Subnets are the IDs of subnets that are delegated to container groups. Plain are the IDs of other subnets.
	Subnets, Plain []string
	// Audiences are the accepted audiences of tokens, for the resource manager and for the metrics. None means
	// the address of the request.
	Audiences Audiences
	// Versions are accepted versions of the API besides the version of the description.
	Versions []string
	// ReadOnly accepts and ignores fields that cannot be written: other clients send the name.
	ReadOnly bool
	// Limits bound the number of requests of operations.
	Limits []Limit
	// Quota is the maximum number of groups. 0 means any number, and a negative number means none.
	Quota int
	// Page is the number of groups on a page of a list; 0 means 100.
	Page int
	// Grace is the grace period of a deleted group in seconds; New sets 30.
	Grace int64

	fleet *emulator.Fleet
	place Place

	mu       sync.Mutex
	groups   map[string]*group   // guarded by mu; keyed by name
	started  int                 // guarded by mu
	stale    []map[string]any    // guarded by mu; the frozen content of lists; nil: lists are not frozen
	sessions map[string]*session // guarded by mu
	windows  map[int]*window     // guarded by mu; keyed by limits
}

// Audiences are the audiences of tokens.
type Audiences struct{ Manager, Metrics []string }

// Principal is an account with the right to log in.
type Principal = entra.Principal

// New returns a server that runs its groups in a fleet.
func New(fleet *emulator.Fleet, place Place, principal Principal) *Server {
	return &Server{
		Tokens: entra.New(principal), fleet: fleet, place: place, Grace: 30,
		groups: map[string]*group{}, sessions: map[string]*session{}, windows: map[int]*window{},
	}
}

// Operation returns the operation of a request, for emulator.NewFront.
func Operation(r *http.Request, _ []byte) string {
	_, rest, found := strings.Cut(r.URL.Path, "/containerGroups")
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	switch {
	case strings.Contains(r.URL.Path, "/oauth2/"):
		return "Token"
	case strings.HasPrefix(r.URL.Path, "/sessions/"):
		return "Session"
	case strings.HasSuffix(r.URL.Path, "/metrics:getBatch"):
		return "Metrics"
	case strings.HasSuffix(r.URL.Path, "/usages"):
		return "Usage"
	case strings.Contains(r.URL.Path, "/subnets/"):
		return "Subnet"
	case strings.Contains(r.URL.Path, "/operations/"):
		return "Status"
	case !found:
		return "Other"
	case parts[0] == "":
		return "List"
	case len(parts) == 4:
		return map[string]string{"logs": "Logs", "exec": "Exec"}[parts[3]]
	case len(parts) == 2 && r.Method == http.MethodPost:
		return map[string]string{"stop": "Stop", "restart": "Restart"}[parts[1]]
	}
	return map[string]string{http.MethodGet: "Get", http.MethodPut: "Create", http.MethodDelete: "Delete"}[r.Method]
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Login(w, r) {
		return
	}
	if name, found := strings.CutPrefix(r.URL.Path, "/sessions/"); found {
		s.runSession(w, r, name)
		return
	}
	audiences := s.Audiences.Manager
	metrics := strings.HasSuffix(r.URL.Path, "/metrics:getBatch")
	if metrics {
		audiences = s.Audiences.Metrics
	}
	if len(audiences) == 0 {
		audiences = []string{"https://" + r.Host}
	}
	if code, message := s.Known(r, audiences); code != "" {
		w.Header().Set("WWW-Authenticate", `Bearer authorization_uri="https://`+r.Host+`"`)
		refuseRequest(w, http.StatusUnauthorized, code, message)
		return
	}
	if after := s.tooMany(Operation(r, nil)); after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
		refuseRequest(w, http.StatusTooManyRequests, "TooManyRequests", "The number of requests is over the limit.")
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) < 3 || parts[0] != "subscriptions":
		refuseRequest(w, http.StatusNotFound, "InvalidResourceType", "The resource type could not be found.")
	case parts[1] != s.place.Subscription:
		refuseRequest(w, http.StatusNotFound, "SubscriptionNotFound", "The subscription '"+parts[1]+"' could not be found.")
	case metrics:
		s.answerMetrics(w, r)
	case len(parts) == 7 && parts[4] == "locations" && parts[6] == "usages":
		s.answerUsages(w, r, parts[5])
	case len(parts) == 8 && parts[4] == "locations" && parts[6] == "operations":
		s.answerOperation(w, r, parts[7])
	case len(parts) == 10 && strings.EqualFold(parts[5], "Microsoft.Network") && parts[8] == "subnets":
		s.answerSubnet(w, r)
	case len(parts) < 7 || !strings.EqualFold(parts[5], "Microsoft.ContainerInstance") || parts[6] != "containerGroups":
		refuseRequest(w, http.StatusNotFound, "InvalidResourceType", "The resource type could not be found.")
	case !s.knowsVersion(r):
		refuseRequest(w, http.StatusBadRequest, "InvalidApiVersionParameter", "The api-version is invalid.")
	default:
		s.answerGroups(w, r, parts[3], parts[7:])
	}
}

// knowsVersion reports whether the version of the API in a request is known.
func (s *Server) knowsVersion(r *http.Request) bool {
	version := r.URL.Query().Get("api-version")
	return version == apiVersion || slices.Contains(s.Versions, version)
}

// answerGroups answers for the path below containerGroups.
func (s *Server) answerGroups(w http.ResponseWriter, r *http.Request, resourceGroup string, path []string) {
	operation := Operation(r, nil)
	action := map[string]string{"List": ActionRead, "Get": ActionRead, "Create": ActionWrite, "Delete": ActionDelete, "Stop": ActionStop, "Restart": ActionRestart, "Logs": ActionLogs, "Exec": ActionExec}[operation]
	switch {
	case action == "" || !s.mayDo(action):
		refuseRequest(w, http.StatusForbidden, "AuthorizationFailed", "The client does not have authorization to perform action '"+action+"'.")
	case !strings.EqualFold(resourceGroup, s.place.ResourceGroup):
		refuseRequest(w, http.StatusNotFound, "ResourceGroupNotFound", "Resource group '"+resourceGroup+"' could not be found.")
	case len(path) > 1 && s.findGroup(path[0]) == nil:
		refuseRequest(w, http.StatusNotFound, "ResourceNotFound", "The Resource 'Microsoft.ContainerInstance/containerGroups/"+path[0]+"' was not found.")
	case operation == "List":
		s.list(w, r)
	case operation == "Create":
		s.createGroup(w, r, path[0])
	case operation == "Get":
		s.get(w, r, path[0])
	case operation == "Delete":
		s.deleteGroup(w, r, path[0])
	case operation == "Stop":
		s.stop(w, r, path[0])
	case operation == "Restart":
		s.restartGroup(w, r, path[0])
	case operation == "Logs":
		s.answerLogs(w, r, path[0], path[2])
	case operation == "Exec":
		s.openExec(w, r, path[0], path[2])
	}
}

func (s *Server) mayDo(action string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Role == nil || slices.Contains(s.Role, action)
}

// Permit changes the actions of the identity.
func (s *Server) Permit(role []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Role = role
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	all, err := s.listedGroups(r.Context())
	if err != nil {
		refuseRequest(w, http.StatusInternalServerError, "InternalServerError", err.Error())
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("$skipToken")) // no token is the first page
	page := s.Page
	if page == 0 {
		page = 100
	}
	from = min(max(from, 0), len(all))
	to := min(from+page, len(all))
	out := map[string]any{"value": all[from:to]}
	if to < len(all) {
		next := *r.URL
		q := next.Query()
		q.Set("$skipToken", strconv.Itoa(to))
		next.RawQuery, next.Scheme, next.Host = q.Encode(), "https", r.Host
		out["nextLink"] = next.String()
	}
	answerJSON(w, http.StatusOK, out)
}

func (s *Server) createGroup(w http.ResponseWriter, r *http.Request, name string) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		refuseRequest(w, http.StatusBadRequest, "InvalidRequestContent", err.Error())
		return
	}
	problems := checkModel("ContainerGroup", data)
	if s.ReadOnly {
		problems = slices.DeleteFunc(problems, func(p string) bool { return strings.HasSuffix(p, readOnly) })
	}
	var asked Request
	if err := json.Unmarshal(data, &asked); err != nil && len(problems) == 0 {
		problems = []string{err.Error()}
	} else if len(problems) == 0 {
		problems = asked.findProblems(name)
	}
	subnets := asked.Properties.SubnetIDs
	// The resource manager checks the location and linked resources before the service checks the rest.
	switch {
	case asked.Location != s.place.Region:
		refuseRequest(w, http.StatusBadRequest, "LocationNotAvailableForResourceType", "The provided location '"+asked.Location+"' is not available.")
	case len(subnets) > 0 && !s.mayDo(ActionJoin):
		refuseRequest(w, http.StatusForbidden, "LinkedAuthorizationFailed", "The client has no permission to perform action '"+ActionJoin+"' on the linked scope.")
	case asked.Identity != nil && len(asked.Identity.UserAssignedIdentities) > 0 && !s.mayDo(ActionAssign):
		refuseRequest(w, http.StatusForbidden, "LinkedAuthorizationFailed", "The client has no permission to perform action '"+ActionAssign+"' on the linked scope.")
	case len(problems) > 0:
		refuseRequest(w, http.StatusBadRequest, "InvalidRequestContent", strings.Join(problems, "; "))
	case len(subnets) > 0 && !slices.Contains(s.Subnets, subnets[0].ID):
		refuseRequest(w, http.StatusBadRequest, "SubnetMissingRequiredDelegation", "Subnet '"+subnets[0].ID+"' requires delegation to Microsoft.ContainerInstance/containerGroups.")
	default:
		for _, rule := range Rules() {
			if problem := rule.Broken(&asked); problem != "" {
				refuseRequest(w, rule.Status, rule.Code, problem)
				return
			}
		}
		s.start(w, r, name, data, asked)
	}
}
