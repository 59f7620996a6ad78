// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// AlgorithmACS3 is the name of the signature of Alibaba Cloud.
const AlgorithmACS3 = "ACS3-HMAC-SHA256"

// Headers of a request with an ACS3 signature.
const (
	HeaderACSAction  = "X-Acs-Action"
	HeaderACSVersion = "X-Acs-Version"
	HeaderACSDate    = "X-Acs-Date"
	HeaderACSNonce   = "X-Acs-Signature-Nonce"
	HeaderACSContent = "X-Acs-Content-Sha256"
	HeaderACSToken   = "X-Acs-Security-Token"
	headerACSKey     = "X-Acs-Accesskey-Id"
)

const acsDateFormat = "2006-01-02T15:04:05Z"

// AuthorizationACS3 returns the value of the header Authorization for a request, signed with a key. The
// signature covers the host, the content type and every header with the prefix x-acs-, also HeaderACSContent, the
// sum of the body.
func AuthorizationACS3(method string, u *url.URL, header map[string]string, k Key) string {
	values := map[string]string{}
	var names []string
	for name, value := range header {
		name = strings.ToLower(name)
		if name == "host" || name == "content-type" || strings.HasPrefix(name, "x-acs-") {
			names = append(names, name)
			values[name] = strings.TrimSpace(value)
		}
	}
	slices.Sort(names)
	var headers strings.Builder
	for _, name := range names {
		headers.WriteString(name + ":" + values[name] + "\n")
	}
	signed := strings.Join(names, ";")
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	canonical := strings.Join([]string{method, path, canonicalQuery(u), headers.String(), signed, values[strings.ToLower(HeaderACSContent)]}, "\n")
	mac := hmac.New(sha256.New, []byte(k.Secret))
	mac.Write([]byte(AlgorithmACS3 + "\n" + hexSum([]byte(canonical)))) // never fails
	return AlgorithmACS3 + " Credential=" + k.Access + ",SignedHeaders=" + signed + ",Signature=" + hex.EncodeToString(mac.Sum(nil))
}

// SignedACS3 returns a transport that signs each request with a key. The caller of a request sets HeaderACSAction and HeaderACSVersion. Each attempt
// has its own date and nonce, because a nonce is valid once. now is the clock; nil means the clock of the machine.
func SignedACS3(next http.RoundTripper, key KeySource, now func() time.Time) http.RoundTripper {
	if now == nil {
		now = time.Now
	}
	return signedACS3{next, key, now}
}

type signedACS3 struct {
	next http.RoundTripper
	key  KeySource
	now  func() time.Time
}

// RoundTrip implements http.RoundTripper.
func (s signedACS3) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	key, err := s.key(r.Context())
	if err != nil {
		return nil, fmt.Errorf("sign a request: %w", err)
	}
	if key.Access == "" || key.Secret == "" {
		return nil, errors.New("sign a request: there is no access key, or no secret of it")
	}
	r = withBody(r, body)
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	r.Header.Set(HeaderACSDate, s.now().UTC().Format(acsDateFormat))
	r.Header.Set(HeaderACSNonce, rand.Text())
	r.Header.Set(HeaderACSContent, hexSum(body))
	if key.Token != "" {
		r.Header.Set(HeaderACSToken, key.Token)
		r.Header.Set(headerACSKey, key.Access)
	}
	header := map[string]string{"Host": host}
	for name := range r.Header {
		header[name] = r.Header.Get(name)
	}
	r.Header.Set("Authorization", AuthorizationACS3(r.Method, r.URL, header, key))
	return s.next.RoundTrip(r)
}
