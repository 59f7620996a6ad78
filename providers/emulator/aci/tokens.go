// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Principal is who may log in.
type Principal struct {
	Tenant, Client string
	// Secret is that of a service principal, and Assertion the token of a service account of a workload identity.
	Secret, Assertion string
	// Machine is that the machine of the client has this identity.
	Machine bool
}

// login answers the requests of Microsoft Entra: where tokens are, and tokens. It reports whether the request was one.
func (s *Server) login(w http.ResponseWriter, r *http.Request) bool {
	tenant, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch rest {
	case "v2.0/.well-known/openid-configuration":
		base := "https://" + r.Host + "/" + tenant
		answer(w, http.StatusOK, map[string]any{
			"issuer": base + "/v2.0", "authorization_endpoint": base + "/oauth2/v2.0/authorize", "token_endpoint": base + "/oauth2/v2.0/token",
			"device_authorization_endpoint": base + "/oauth2/v2.0/devicecode",
		})
	case "oauth2/v2.0/token":
		s.token(w, r, tenant)
	case "discovery/instance":
		answer(w, http.StatusOK, map[string]any{
			"tenant_discovery_endpoint": "https://" + r.Host + "/" + s.principal.Tenant + "/v2.0/.well-known/openid-configuration", "api-version": "1.1",
			"metadata": []any{map[string]any{"preferred_network": r.Host, "preferred_cache": r.Host, "aliases": []string{r.Host}}},
		})
	case "identity/oauth2/token":
		s.machine(w, r)
	default:
		return false
	}
	return true
}

// machine answers as the service of metadata does that each machine of Azure has, for its managed identity.
func (s *Server) machine(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := r.URL.Query().Get("client_id"); r.Header.Get("Metadata") != "true" || !s.principal.Machine || id != "" && id != s.principal.Client {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_request", "error_description": "Identity not found"})
		return
	}
	s.give(w, r.URL.Query().Get("resource"))
}

func (s *Server) token(w http.ResponseWriter, r *http.Request, tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, code := s.principal, ""
	switch {
	case r.Method != http.MethodPost || r.ParseForm() != nil:
		code = "AADSTS900144: The request body is not understood."
	case tenant != who.Tenant:
		code = "AADSTS90002: Tenant '" + tenant + "' not found."
	case r.PostForm.Get("client_id") != who.Client:
		code = "AADSTS700016: Application with identifier '" + r.PostForm.Get("client_id") + "' was not found in the directory."
	case who.Secret != "" && s.secretExpired:
		code = "AADSTS7000222: The provided client secret keys for app are expired."
	case who.Secret != "" && r.PostForm.Get("client_secret") != who.Secret:
		code = "AADSTS7000215: Invalid client secret provided."
	case who.Secret == "" && (who.Assertion == "" || r.PostForm.Get("client_assertion") != who.Assertion):
		code = "AADSTS700213: No matching federated identity record found for presented assertion."
	}
	if code != "" {
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client", "error_description": code + " Trace ID: 0 Correlation ID: 0"})
		return
	}
	s.give(w, strings.TrimSuffix(r.PostForm.Get("scope"), "/.default"))
}

// pass is a token that was given.
type pass struct {
	until    time.Time
	audience string
}

// give answers with a token for an audience. s.mu is held.
func (s *Server) give(w http.ResponseWriter, audience string) {
	if first, _, several := strings.Cut(audience, "/.default "); several { // with openid and offline_access
		audience = first
	}
	token := rand.Text()
	s.tokens[token] = pass{time.Now().Add(s.TokenLife), strings.TrimSuffix(audience, "/")}
	answer(w, http.StatusOK, map[string]any{
		"token_type": "Bearer", "access_token": token, "resource": audience, "expires_in": int(s.TokenLife.Seconds()), "ext_expires_in": int(s.TokenLife.Seconds()),
		"expires_on": time.Now().Add(s.TokenLife).Unix(),
	})
}

// known says what is wrong with the token of a request, "" if it is good.
func (s *Server) known(r *http.Request, audiences []string) (code, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	pass, given := s.tokens[token]
	switch {
	case !ok:
		return "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing."
	case !given:
		return "InvalidAuthenticationToken", "The access token is invalid."
	case !time.Now().Before(pass.until):
		return "ExpiredAuthenticationToken", "The access token expiry UTC time is earlier than current UTC time."
	case !slices.Contains(audiences, pass.audience):
		return "InvalidAuthenticationToken", "The access token has been obtained for wrong audience or resource '" + pass.audience + "'. It should be '" + audiences[0] + "'."
	}
	return "", ""
}

func answer(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that is gone gets nothing
}

// refuse answers with an error as the resource manager has it.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("x-ms-correlation-request-id", rand.Text())
	answer(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}
