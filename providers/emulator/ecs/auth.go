// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"
)

// tolerated is the maximum difference between the time of a request and the clock.
const tolerated = 5 * time.Minute

// Key is an access key of the server. Token belongs to a temporary key.
type Key struct {
	Secret, Token string
	// Expires is the end of its validity; the zero time means never.
	Expires time.Time
	// Allow are the actions in the policy of the key, such as ecs:RunTask. Nil means all.
	Allow []string
}

// gate admits requests with a valid and timely signature (Signature Version 4) of one of its keys.
type gate struct {
	keys   map[string]Key
	region string
	now    func() time.Time
}

// refuseReason returns the code and the message of the error of a request, or "" if the request is admitted.
func (g gate) refuseReason(r *http.Request, body []byte, service string) (code, message string) {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	said := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		said[name] = value
	}
	id, scope, _ := strings.Cut(said["Credential"], "/")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	key, known := g.keys[id]
	switch {
	case !ok || id == "":
		return "MissingAuthenticationTokenException", "Missing Authentication Token"
	case !known || key.Token != r.Header.Get("X-Amz-Security-Token"):
		return "UnrecognizedClientException", "The security token included in the request is invalid."
	case !key.Expires.IsZero() && g.now().After(key.Expires):
		return "ExpiredTokenException", "The security token included in the request is expired"
	case err != nil || g.now().Sub(at).Abs() > tolerated:
		return "InvalidSignatureException", "Signature expired: " + r.Header.Get("X-Amz-Date") + " is now earlier than " + g.now().UTC().Format("20060102T150405Z")
	case scope != at.Format("20060102")+"/"+g.region+"/"+service+"/aws4_request":
		return "InvalidSignatureException", "Credential should be scoped to a valid region."
	case !hmac.Equal([]byte(said["Signature"]), []byte(requestSignature(r, body, strings.Split(said["SignedHeaders"], ";"), scope, key.Secret))):
		return "InvalidSignatureException", "The request signature we calculated does not match the signature you provided."
	}
	return "", ""
}

// requestSignature returns the signature of a request over these headers, or "" if a required header is missing among
// them.
func requestSignature(r *http.Request, body []byte, signed []string, scope, secret string) string {
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-") && !slices.Contains(signed, name) {
			return ""
		}
	}
	if !slices.Contains(signed, "host") || !slices.IsSorted(signed) {
		return ""
	}
	var headers strings.Builder
	for _, name := range signed {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = r.Header.Get("Content-Length")
			if value == "" {
				value = lengthOf(body)
			}
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	sum := sha256.Sum256(body)
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	request := strings.Join([]string{r.Method, path, query, headers.String(), strings.Join(signed, ";"), hex.EncodeToString(sum[:])}, "\n")
	sum = sha256.Sum256([]byte(request))
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = hmacOf(key, part)
	}
	return hex.EncodeToString(hmacOf(key, "AWS4-HMAC-SHA256\n"+r.Header.Get("X-Amz-Date")+"\n"+scope+"\n"+hex.EncodeToString(sum[:])))
}

func hmacOf(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text)) // never fails
	return m.Sum(nil)
}
