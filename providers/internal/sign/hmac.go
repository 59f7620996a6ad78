// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Algorithm is the name of the signature.
const Algorithm = "SDK-HMAC-SHA256"

// Headers of a signed request.
const (
	HeaderDate          = "X-Sdk-Date"
	HeaderProject       = "X-Project-Id"
	HeaderSecurityToken = "X-Security-Token"
)

// dateFormat is the format of HeaderDate.
const dateFormat = "20060102T150405Z"

// Key is an access key and its secret. Token belongs to a temporary key; it is "" for a permanent key.
type Key struct {
	Access, Secret, Token string
}

// Request is the part of a request that a signature covers.
type Request struct {
	Method string
	// URL has the path and the query.
	URL *url.URL
	// Header are the signed headers, including HeaderDate.
	Header map[string]string
	Body   []byte
}

// Authorization returns the value of the header Authorization for a request, signed with a key.
func Authorization(r Request, k Key) string {
	names := make([]string, 0, len(r.Header))
	values := map[string]string{}
	for name, value := range r.Header {
		name = strings.ToLower(name)
		names = append(names, name)
		values[name] = strings.TrimSpace(value)
	}
	slices.Sort(names)
	signed := strings.Join(names, ";")
	var headers strings.Builder
	for _, name := range names {
		headers.WriteString(name + ":" + values[name] + "\n")
	}
	canonical := strings.Join([]string{r.Method, canonicalPath(r.URL), canonicalQuery(r.URL), headers.String(), signed, hexSum(r.Body)}, "\n")
	toSign := strings.Join([]string{Algorithm, values[strings.ToLower(HeaderDate)], hexSum([]byte(canonical))}, "\n")
	mac := hmac.New(sha256.New, []byte(k.Secret))
	mac.Write([]byte(toSign)) // never fails
	return Algorithm + " Access=" + k.Access + ", SignedHeaders=" + signed + ", Signature=" + hex.EncodeToString(mac.Sum(nil))
}

// setSigned signs a request with a body at a time.
func setSigned(r *http.Request, body []byte, k Key, project string, now time.Time) {
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	signed := map[string]string{"Host": host, HeaderDate: now.UTC().Format(dateFormat)}
	if project != "" {
		signed[HeaderProject] = project
	}
	if k.Token != "" {
		signed[HeaderSecurityToken] = k.Token
	}
	for name, value := range signed {
		if name != "Host" {
			r.Header.Set(name, value)
		}
	}
	r.Header.Set("Authorization", Authorization(Request{Method: r.Method, URL: r.URL, Header: signed, Body: body}, k))
}

// canonicalPath returns the path with a slash at its end, each part escaped.
func canonicalPath(u *url.URL) string {
	var out strings.Builder
	for part := range strings.SplitSeq(strings.TrimSuffix(u.EscapedPath(), "/"), "/") {
		plain, err := url.PathUnescape(part)
		if err != nil {
			plain = part
		}
		out.WriteString(escapeText(plain) + "/")
	}
	return out.String()
}

// canonicalQuery returns the query, sorted by name and value.
func canonicalQuery(u *url.URL) string {
	values := u.Query()
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []string
	for _, name := range names {
		slices.Sort(values[name])
		for _, value := range values[name] {
			out = append(out, escapeText(name)+"="+escapeText(value))
		}
	}
	return strings.Join(out, "&")
}

// escapeText escapes all but unreserved characters as %XX.
func escapeText(s string) string {
	const hexDigits = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			out.WriteByte(c)
			continue
		}
		out.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
	}
	return out.String()
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
