// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sign"
)

const credentialsJSON = `{"Code":"Success","AccessKeyId":"STS.1","AccessKeySecret":"s","SecurityToken":"t","Expiration":"2999-01-01T00:00:00Z"}`

func TestKeyOfTheInstance(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" && r.Header.Get("X-aliyun-ecs-metadata-token-ttl-seconds") != "":
			_, _ = w.Write([]byte("token"))
		case r.Header.Get("X-aliyun-ecs-metadata-token") == "token" && r.URL.Path == "/latest/meta-data/ram/security-credentials/vk":
			_, _ = w.Write([]byte(credentialsJSON))
		default:
			http.Error(w, "no", http.StatusForbidden)
		}
	}))
	defer server.Close()
	ask := func(role string) (sign.Key, error) {
		return Config{InstanceRole: InstanceRole{Name: role, Endpoint: server.URL}}.keys(http.DefaultTransport, time.Now)(t.Context())
	}
	if key, err := ask("vk"); err != nil || key != (sign.Key{Access: "STS.1", Secret: "s", Token: "t"}) {
		t.Errorf("got %v, %v", key, err)
	}
	if _, err := ask("other"); err == nil || !strings.Contains(err.Error(), "role other") {
		t.Errorf("a role that is not there: %v", err)
	}
}

func TestKeyByOIDC(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("jwt-canary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(data))
		if refuses || form.Get("OIDCToken") != "jwt-canary" || form.Get("RoleArn") != "acs:ram::1:role/vk" || r.URL.Query().Get("Action") != "AssumeRoleWithOIDC" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"Code":"AuthenticationFail.OIDCToken.Expired","Message":"jwt-canary"}`))
			return
		}
		_, _ = w.Write([]byte(`{"Credentials":` + credentialsJSON + `}`))
	}))
	defer server.Close()
	c := Config{OIDC: OIDC{RoleARN: "acs:ram::1:role/vk", ProviderARN: "p", TokenFile: file, Endpoint: server.URL}}
	if key, err := c.keys(http.DefaultTransport, time.Now)(t.Context()); err != nil || key.Access != "STS.1" {
		t.Errorf("got %v, %v", key, err)
	}
	refuses = true
	_, err := c.keys(http.DefaultTransport, time.Now)(t.Context())
	if err == nil || !strings.Contains(err.Error(), "OIDCToken.Expired") || strings.Contains(err.Error(), "canary") {
		t.Errorf("a refusal: %v", err)
	}
}

// TestMetadataNeedsNoProxy: one has the metadata of another instance, or reads the key.
func TestMetadataNeedsNoProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(credentialsJSON)) }))
	defer server.Close()
	next := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("through a proxy") }}
	if _, err := (Config{InstanceRole: InstanceRole{Name: "vk", Endpoint: server.URL}}).keys(next, time.Now)(t.Context()); err != nil {
		t.Error(err)
	}
}
