// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator"
)

// Place is the one that the server has.
type Place struct{ Subscription, ResourceGroup, Region string }

// Actions of the resource manager.
const (
	ActionRead   = "Microsoft.ContainerInstance/containerGroups/read"
	ActionWrite  = "Microsoft.ContainerInstance/containerGroups/write"
	ActionDelete = "Microsoft.ContainerInstance/containerGroups/delete"
	ActionLogs   = "Microsoft.ContainerInstance/containerGroups/containers/logs/read"
	ActionExec   = "Microsoft.ContainerInstance/containerGroups/containers/exec/action"
	ActionJoin   = "Microsoft.Network/virtualNetworks/subnets/join/action"
)

// Server is the service. Its fields are set before the first request.
type Server struct {
	// Role are the actions that the identity has on the resource group. Nil: all.
	Role []string
	// Subnets are the IDs of those that are delegated to container groups.
	Subnets []string
	// Quota is how many groups there may be; 0 is any number.
	Quota int
	// Page is how many groups a page of a list has; 0 is 100.
	Page int
	// TokenLife is how long a token is good; New sets an hour.
	TokenLife time.Duration
	// Grace is how many seconds the containers of a group have to end when it is deleted; New sets 30.
	Grace int64

	fleet *emulator.Fleet
	place Place

	mu            sync.Mutex
	principal     Principal            // guarded by mu
	secretExpired bool                 // guarded by mu
	tokens        map[string]time.Time // guarded by mu
	groups        map[string]*group    // guarded by mu; by name
	started       int                  // guarded by mu
	stale         []map[string]any     // guarded by mu; what lists say in the place of what is
	sessions      map[string]*session  // guarded by mu
}

// New returns a server whose groups run in a fleet.
func New(fleet *emulator.Fleet, place Place, principal Principal) *Server {
	return &Server{
		fleet: fleet, place: place, principal: principal, TokenLife: time.Hour, Grace: 30,
		tokens: map[string]time.Time{}, groups: map[string]*group{}, sessions: map[string]*session{},
	}
}

// Operation is what a request is, for emulator.NewFront.
func Operation(r *http.Request, _ []byte) string {
	_, rest, found := strings.Cut(r.URL.Path, "/containerGroups")
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	switch {
	case strings.Contains(r.URL.Path, "/oauth2/"):
		return "Token"
	case strings.HasPrefix(r.URL.Path, "/sessions/"):
		return "Session"
	case !found:
		return "Other"
	case parts[0] == "":
		return "List"
	case len(parts) == 4:
		return map[string]string{"logs": "Logs", "exec": "Exec"}[parts[3]]
	}
	return map[string]string{http.MethodGet: "Get", http.MethodPut: "Create", http.MethodDelete: "Delete"}[r.Method]
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.login(w, r) {
		return
	}
	if name, found := strings.CutPrefix(r.URL.Path, "/sessions/"); found {
		s.converse(w, r, name)
		return
	}
	s.mu.Lock()
	ok := s.known(r)
	s.mu.Unlock()
	if !ok {
		w.Header().Set("WWW-Authenticate", `Bearer authorization_uri="https://`+r.Host+`"`)
		refuse(w, http.StatusUnauthorized, "ExpiredAuthenticationToken", "The access token expiry UTC time is earlier than current UTC time.")
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) < 7 || parts[0] != "subscriptions" || !strings.EqualFold(parts[5], "Microsoft.ContainerInstance") || parts[6] != "containerGroups":
		refuse(w, http.StatusNotFound, "InvalidResourceType", "The resource type could not be found.")
	case r.URL.Query().Get("api-version") != "2023-05-01":
		refuse(w, http.StatusBadRequest, "InvalidApiVersionParameter", "The api-version is invalid.")
	case parts[1] != s.place.Subscription:
		refuse(w, http.StatusNotFound, "SubscriptionNotFound", "The subscription '"+parts[1]+"' could not be found.")
	default:
		s.manage(w, r, parts[3], parts[7:])
	}
}

// manage answers for the path below containerGroups.
func (s *Server) manage(w http.ResponseWriter, r *http.Request, resourceGroup string, path []string) {
	operation := Operation(r, nil)
	action := map[string]string{"List": ActionRead, "Get": ActionRead, "Create": ActionWrite, "Delete": ActionDelete, "Logs": ActionLogs, "Exec": ActionExec}[operation]
	switch {
	case action == "" || !s.may(action):
		refuse(w, http.StatusForbidden, "AuthorizationFailed", "The client does not have authorization to perform action '"+action+"'.")
	case !strings.EqualFold(resourceGroup, s.place.ResourceGroup):
		refuse(w, http.StatusNotFound, "ResourceGroupNotFound", "Resource group '"+resourceGroup+"' could not be found.")
	case operation == "List":
		s.list(w, r)
	case operation == "Create":
		s.create(w, r, path[0])
	case operation == "Get":
		s.get(w, r, path[0])
	case operation == "Delete":
		s.delete(w, r, path[0])
	case operation == "Logs":
		s.logs(w, r, path[0], path[2])
	case operation == "Exec":
		s.exec(w, r, path[0], path[2])
	}
}

func (s *Server) may(action string) bool { return s.Role == nil || slices.Contains(s.Role, action) }

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	all, err := s.shown(r.Context())
	if err != nil {
		refuse(w, http.StatusInternalServerError, "InternalServerError", err.Error())
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("$skipToken")) // none is the first
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
	answer(w, http.StatusOK, out)
}

func (s *Server) create(w http.ResponseWriter, r *http.Request, name string) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "InvalidRequestContent", err.Error())
		return
	}
	problems := check("ContainerGroup", data)
	var asked properties
	if len(problems) == 0 {
		if err := json.Unmarshal(data, &asked); err != nil {
			problems = []string{err.Error()}
		} else {
			problems = asked.problems(name)
		}
	}
	subnets := asked.Properties.SubnetIDs
	switch {
	case len(problems) > 0:
		refuse(w, http.StatusBadRequest, "InvalidRequestContent", strings.Join(problems, "; "))
	case asked.Location != s.place.Region:
		refuse(w, http.StatusBadRequest, "LocationNotAvailableForResourceType", "The provided location '"+asked.Location+"' is not available.")
	case len(subnets) > 0 && !s.may(ActionJoin):
		refuse(w, http.StatusForbidden, "LinkedAuthorizationFailed", "The client has no permission to perform action '"+ActionJoin+"' on the linked scope.")
	case len(subnets) > 0 && !slices.Contains(s.Subnets, subnets[0].ID):
		refuse(w, http.StatusBadRequest, "SubnetMissingRequiredDelegation", "Subnet '"+subnets[0].ID+"' requires delegation to Microsoft.ContainerInstance/containerGroups.")
	default:
		s.start(w, r, name, data, asked)
	}
}

// Principal changes who may log in. Tokens that were given stay good unless drop.
func (s *Server) Principal(p Principal, drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.principal = p
	if drop {
		clear(s.tokens)
	}
}

// ExpireSecret lets the secret of the service principal be too old, and drops tokens.
func (s *Server) ExpireSecret() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secretExpired = true
	clear(s.tokens)
}
