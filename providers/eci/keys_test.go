// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/eci"
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

// TestMetadataNeedsNoProxy checks that the metadata service is reached without a proxy. A proxy would return the
// metadata of another instance, or read the key.
func TestMetadataNeedsNoProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(credentialsJSON)) }))
	defer server.Close()
	next := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, errors.New("through a proxy") }}
	if _, err := (Config{InstanceRole: InstanceRole{Name: "vk", Endpoint: server.URL}}).keys(next, time.Now)(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestTemporaryKeysAreRenewed checks that a role is assumed again with the OIDC token before the temporary
// credentials expire. ECI then rejects the old key, and no round fails.
func TestTemporaryKeysAreRenewed(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("jwt"), 0o600); err != nil {
		t.Fatal(err)
	}
	const life = 3 * time.Second
	var mu sync.Mutex
	given := 0
	for n := range 100 {
		h.region.Keys["STS."+strconv.Itoa(n)] = eci.Key{Secret: "s" + strconv.Itoa(n), Token: "t" + strconv.Itoa(n), Actions: policy}
	}
	sts := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		n, ends := strconv.Itoa(given), time.Now().Add(life)
		given++
		h.region.Expire("STS."+n, ends)
		_, _ = fmt.Fprintf(w, `{"Credentials":{"AccessKeyId":"STS.%s","AccessKeySecret":"s%s","SecurityToken":"t%s","Expiration":%q}}`, n, n, n, ends.UTC().Format(time.RFC3339Nano))
	}))
	t.Cleanup(sts.Close)
	h.next.TLSClientConfig.RootCAs.AddCert(sts.Certificate())
	h.config.AccessKeyID, h.config.AccessKeySecret = config.Secret{}, config.Secret{}
	h.config.OIDC = OIDC{RoleARN: "acs:ram::1:role/vk", ProviderARN: "acs:ram::1:oidc-provider/k8s", TokenFile: token, Endpoint: sts.URL}
	p, stop := h.start()
	defer stop()
	h.Until("the third key is used", func() (bool, string) {
		if err := p.Ping(h.Context()); err != nil {
			t.Errorf("the node is not well: %v", err)
			return true, ""
		}
		used := map[string]bool{}
		for _, r := range h.region.front.Requests() {
			_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
			id, _, _ := strings.Cut(rest, ",")
			used[id] = true
		}
		return used["STS.2"], fmt.Sprint(used)
	})
}
