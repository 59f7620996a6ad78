// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	apiVersion = "2018-08-08"
	// tolerated is the maximum difference between the time of a request and the clock.
	tolerated = 15 * time.Minute
)

// Key is an access key of the server.
type Key struct {
	Secret string
	// Token and Ends belong to a temporary key.
	Token string
	Ends  time.Time
	// Actions are the allowed actions of its user or role, such as eci:CreateContainerGroup; nil means all.
	Actions []string
}

// Gate admits requests with a timely ACS3-HMAC-SHA256 signature of one of its keys, each once.
type Gate struct {
	// Keys are by their IDs.
	Keys map[string]Key
	// Now is the clock; nil for the machine's.
	Now func() time.Time

	mu     sync.Mutex
	nonces map[string]bool      // guarded by mu
	only   map[string][]string  // guarded by mu; the allowed actions of a key since Permit
	ends   map[string]time.Time // guarded by mu; when a key ends since Expire
}

// Permit changes the allowed actions of the user of a key.
func (g *Gate) Permit(id string, actions []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.only == nil {
		g.only = map[string][]string{}
	}
	g.only[id] = actions
}

// Expire sets the end of a key.
func (g *Gate) Expire(id string, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ends == nil {
		g.ends = map[string]time.Time{}
	}
	g.ends[id] = at
}

// endOf returns when a key expires; the zero time means never.
func (g *Gate) endOf(id string) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at, ok := g.ends[id]; ok {
		return at
	}
	return g.Keys[id].Ends
}

// Refuses returns the code of the error of a request, or "" if the request is admitted.
func (g *Gate) Refuses(r *http.Request, body []byte) (code string) {
	now := time.Now
	if g.Now != nil {
		now = g.Now
	}
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "ACS3-HMAC-SHA256 ")
	said := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(part, "=")
		said[name] = value
	}
	key, known := g.Keys[said["Credential"]]
	ends := g.endOf(said["Credential"])
	at, err := time.Parse("2006-01-02T15:04:05Z", r.Header.Get("X-Acs-Date"))
	sum := sha256.Sum256(body)
	switch {
	case !ok || said["Credential"] == "":
		return "MissingAuthorization"
	case r.Header.Get("X-Acs-Version") != apiVersion:
		return "InvalidVersion"
	case !known:
		return "InvalidAccessKeyId.NotFound"
	case key.Token != r.Header.Get("X-Acs-Security-Token"):
		return "InvalidSecurityToken.MismatchWithAccessKey"
	case !ends.IsZero() && now().After(ends):
		return "InvalidSecurityToken.Expired"
	case err != nil || now().Sub(at).Abs() > tolerated:
		return "InvalidTimeStamp.Expired"
	case r.Header.Get("X-Acs-Content-Sha256") != hex.EncodeToString(sum[:]):
		return "SignatureDoesNotMatch"
	case !hmac.Equal([]byte(said["Signature"]), []byte(requestSignature(r, strings.Split(said["SignedHeaders"], ";"), key.Secret))):
		return "SignatureDoesNotMatch"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	nonce := r.Header.Get("X-Acs-Signature-Nonce")
	if nonce == "" || g.nonces[nonce] {
		return "SignatureNonceUsed"
	}
	if g.nonces == nil {
		g.nonces = map[string]bool{}
	}
	g.nonces[nonce] = true
	return ""
}

// requestSignature returns the signature of a request over these headers, or "" if a required header is missing among
// them.
func requestSignature(r *http.Request, signed []string, secret string) string {
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-acs-") && !slices.Contains(signed, name) {
			return ""
		}
	}
	if !slices.Contains(signed, "host") || !slices.IsSorted(signed) {
		return ""
	}
	var headers strings.Builder
	for _, name := range signed {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		headers.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	// The signature needs a sorted query. Encode sorts the query, but writes a space as a plus; the signature
	// does not.
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	request := strings.Join([]string{r.Method, "/", query, headers.String(), strings.Join(signed, ";"), r.Header.Get("X-Acs-Content-Sha256")}, "\n")
	sum := sha256.Sum256([]byte(request))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("ACS3-HMAC-SHA256\n" + hex.EncodeToString(sum[:]))) // never fails
	return hex.EncodeToString(mac.Sum(nil))
}

// allowedActions returns the allowed actions of the user of an admitted request; nil means all.
func (g *Gate) allowedActions(r *http.Request) []string {
	_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	id, _, _ := strings.Cut(rest, ",")
	g.mu.Lock()
	defer g.mu.Unlock()
	if only, ok := g.only[id]; ok {
		return only
	}
	return g.Keys[id].Actions
}
