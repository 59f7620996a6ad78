// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// signed returns a request with a signature of the vendor's own signer (darabonba-openapi v2.1.13).
func signed() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "https://eci.cn-hangzhou.aliyuncs.com/", nil)
	for name, value := range map[string]string{
		"x-acs-action": "DescribeContainerGroups", "x-acs-version": "2018-08-08", "x-acs-date": "2026-01-02T03:04:05Z", "x-acs-signature-nonce": "0123456789abcdef",
		"x-acs-content-sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"Authorization": "ACS3-HMAC-SHA256 Credential=AKEXAMPLE,SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version," +
			"Signature=a6993c7a6f2c70c4fad20e1af33e6b5dbf1490a371b014d9f95e8f19584e20d4",
	} {
		r.Header.Set(name, value)
	}
	return r
}

func TestGate(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name   string
		change func(*http.Request, *Gate)
		body   string
		want   string
	}{
		{"as the vendor signs", func(*http.Request, *Gate) {}, "", ""},
		{"late", func(_ *http.Request, g *Gate) { g.Now = func() time.Time { return at.Add(16 * time.Minute) } }, "", "InvalidTimeStamp.Expired"},
		{"another secret", func(_ *http.Request, g *Gate) { g.Keys = map[string]Key{"AKEXAMPLE": {Secret: "x"}} }, "", "SignatureDoesNotMatch"},
		{"an unknown key", func(_ *http.Request, g *Gate) { g.Keys = nil }, "", "InvalidAccessKeyId.NotFound"},
		{"another action", func(r *http.Request, _ *Gate) { r.Header.Set("X-Acs-Action", "DeleteContainerGroup") }, "", "SignatureDoesNotMatch"},
		{"a header that is not signed", func(r *http.Request, _ *Gate) { r.Header.Set("X-Acs-New", "x") }, "", "SignatureDoesNotMatch"},
		{"another body", func(*http.Request, *Gate) {}, "x", "SignatureDoesNotMatch"},
		{"another query", func(r *http.Request, _ *Gate) { r.URL.RawQuery = "a=b" }, "", "SignatureDoesNotMatch"},
		{"another host", func(r *http.Request, _ *Gate) { r.Host = "example.com" }, "", "SignatureDoesNotMatch"},
		{"another version", func(r *http.Request, _ *Gate) { r.Header.Set("X-Acs-Version", "2014-05-26") }, "", "InvalidVersion"},
		{"a token that does not belong to it", func(r *http.Request, _ *Gate) { r.Header.Set("X-Acs-Security-Token", "t") }, "", "InvalidSecurityToken.MismatchWithAccessKey"},
		{"without a signature", func(r *http.Request, _ *Gate) { r.Header.Del("Authorization") }, "", "MissingAuthorization"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &Gate{Keys: map[string]Key{"AKEXAMPLE": {Secret: "SKEXAMPLE/+="}}, Now: func() time.Time { return at }}
			r := signed()
			c.change(r, g)
			if got := g.Refuses(r, []byte(c.body)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	g := &Gate{Keys: map[string]Key{"AKEXAMPLE": {Secret: "SKEXAMPLE/+="}}, Now: func() time.Time { return at }}
	if first, second := g.Refuses(signed(), nil), g.Refuses(signed(), nil); first != "" || second != "SignatureNonceUsed" {
		t.Errorf("the same request twice: %q, then %q", first, second)
	}
}
