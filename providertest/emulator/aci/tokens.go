// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Principal is who may log in.
type Principal struct {
	Tenant, Client string
	// Secret is that of a service principal, and Assertion the token of a service account of a workload identity.
	Secret, Assertion string
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
	default:
		return false
	}
	return true
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
	case who.Secret == "" && r.PostForm.Get("client_assertion") != who.Assertion:
		code = "AADSTS700213: No matching federated identity record found for presented assertion."
	}
	if code != "" {
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client", "error_description": code + " Trace ID: 0 Correlation ID: 0"})
		return
	}
	token := rand.Text()
	s.tokens[token] = time.Now().Add(s.TokenLife)
	answer(w, http.StatusOK, map[string]any{"token_type": "Bearer", "access_token": token, "expires_in": int(s.TokenLife.Seconds()), "ext_expires_in": int(s.TokenLife.Seconds())})
}

// known reports whether a request has a token that is good. s.mu is held.
func (s *Server) known(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && time.Now().Before(s.tokens[token])
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
