// SPDX-License-Identifier: Apache-2.0

package entra

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Principal is an account with the right to log in.
type Principal struct {
	Tenant, Client string
	// Secret is the secret of a service principal. Assertion is the service account token of a workload
	// identity.
	Secret, Assertion string
	// Machine reports whether the machine of the client has this identity.
	Machine bool
}

// Login answers the requests of Microsoft Entra for the address of tokens and for tokens. It reports whether the
// request was such a request.
func (t *Tokens) Login(w http.ResponseWriter, r *http.Request) bool {
	tenant, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch rest {
	case "v2.0/.well-known/openid-configuration":
		base := "https://" + r.Host + "/" + tenant
		answerJSON(w, http.StatusOK, map[string]any{
			"issuer": base + "/v2.0", "authorization_endpoint": base + "/oauth2/v2.0/authorize", "token_endpoint": base + "/oauth2/v2.0/token",
			"device_authorization_endpoint": base + "/oauth2/v2.0/devicecode",
		})
	case "oauth2/v2.0/token":
		t.answerToken(w, r, tenant)
	case "discovery/instance":
		answerJSON(w, http.StatusOK, map[string]any{
			"tenant_discovery_endpoint": "https://" + r.Host + "/" + t.principal.Tenant + "/v2.0/.well-known/openid-configuration", "api-version": "1.1",
			"metadata": []any{map[string]any{"preferred_network": r.Host, "preferred_cache": r.Host, "aliases": []string{r.Host}}},
		})
	case "identity/oauth2/token":
		t.answerMachine(w, r)
	default:
		return false
	}
	return true
}

// answerMachine answers, for the managed identity, as the metadata service of each machine of Azure does.
func (t *Tokens) answerMachine(w http.ResponseWriter, r *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := r.URL.Query()
	id := cmp.Or(q.Get("client_id"), q.Get("msi_res_id"))
	known := t.principal.Machine && (id == "" || id == t.principal.Client) || id != "" && slices.Contains(t.Identities, id)
	if r.Header.Get("Metadata") != "true" || !known {
		answerJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_request", "error_description": "Identity not found"})
		return
	}
	t.issueToken(w, r.URL.Query().Get("resource"))
}

func (t *Tokens) answerToken(w http.ResponseWriter, r *http.Request, tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	who, code := t.principal, ""
	switch {
	case r.Method != http.MethodPost || r.ParseForm() != nil:
		code = "AADSTS900144: The request body is not understood."
	case tenant != who.Tenant:
		code = "AADSTS90002: Tenant '" + tenant + "' not found."
	case r.PostForm.Get("client_id") != who.Client:
		code = "AADSTS700016: Application with identifier '" + r.PostForm.Get("client_id") + "' was not found in the directory."
	case who.Secret != "" && t.secretExpired:
		code = "AADSTS7000222: The provided client secret keys for app are expired."
	case who.Secret != "" && r.PostForm.Get("client_secret") != who.Secret:
		code = "AADSTS7000215: Invalid client secret provided."
	case who.Secret == "" && (who.Assertion == "" || r.PostForm.Get("client_assertion") != who.Assertion):
		code = "AADSTS700213: No matching federated identity record found for presented assertion."
	}
	if code != "" {
		answerJSON(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client", "error_description": code + " Trace ID: 0 Correlation ID: 0"})
		return
	}
	t.issueToken(w, strings.TrimSuffix(r.PostForm.Get("scope"), "/.default"))
}

// Tokens issues and recognizes tokens.
type Tokens struct {
	// TokenLife is the lifetime of a token; New sets an hour.
	TokenLife time.Duration
	// Identities are identities of machines besides the principal, by client or by resource. Set them before the
	// first request.
	Identities []string

	mu            sync.Mutex
	principal     Principal       // guarded by mu
	secretExpired bool            // guarded by mu
	tokens        map[string]pass // guarded by mu
}

// New returns Tokens for a principal.
func New(p Principal) *Tokens {
	return &Tokens{TokenLife: time.Hour, principal: p, tokens: map[string]pass{}}
}

// pass is an issued token.
type pass struct {
	until    time.Time
	audience string
}

// issueToken answers with a token for an audience. The caller holds t.mu.
func (t *Tokens) issueToken(w http.ResponseWriter, audience string) {
	if first, _, several := strings.Cut(audience, "/.default "); several { // with openid and offline_access
		audience = first
	}
	text := rand.Text()
	t.tokens[text] = pass{time.Now().Add(t.TokenLife), strings.TrimSuffix(audience, "/")}
	answerJSON(w, http.StatusOK, map[string]any{
		"token_type": "Bearer", "access_token": text, "resource": audience, "expires_in": int(t.TokenLife.Seconds()), "ext_expires_in": int(t.TokenLife.Seconds()),
		"expires_on": time.Now().Add(t.TokenLife).Unix(),
	})
}

// Known returns the problem of the token of a request, or "" if the token is valid.
func (t *Tokens) Known(r *http.Request, audiences []string) (code, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	pass, given := t.tokens[token]
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

func answerJSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may have disconnected
}

// Principal changes the account with the right to log in. Issued tokens stay valid unless drop is true.
func (t *Tokens) Principal(p Principal, drop bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.principal = p
	if drop {
		clear(t.tokens)
	}
}

// ExpireSecret expires the secret of the service principal, and drops tokens.
func (t *Tokens) ExpireSecret() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.secretExpired = true
	clear(t.tokens)
}
