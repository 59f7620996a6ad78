// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/zun"
)

// TestOldProviderStarts checks the variables and the file of openstack-zun, together with the name of the cluster.
func TestOldProviderStarts(t *testing.T) {
	for name, value := range map[string]string{
		"OS_AUTH_URL": "https://keystone.example.com/v3", "OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_DOMAIN_ID": "default", "OS_PROJECT_NAME": "project", "OS_REGION_NAME": "RegionOne",
	} {
		t.Setenv(name, value)
	}
	file := filepath.Join(t.TempDir(), "zun.toml")
	if err := os.WriteFile(file, []byte("OperatingSystem = \"Linux\"\nCPU = \"20\"\nMemory = \"100Gi\"\nPods = \"20\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	c.ClusterName = "home"
	if c, err = c.complete(); err != nil || c.Region != "RegionOne" || c.Capacity.Cpu().String() != "20" || c.Capacity.Memory().String() != "100Gi" || c.Capacity.Pods().String() != "20" {
		t.Errorf("got %+v, %v", c, err)
	}
	login, err := c.readLogin(t.Context())
	who := login.Credentials
	if err != nil || who.IdentityEndpoint != "https://keystone.example.com/v3" || who.Username != "u" || who.Password != "p" || who.DomainID != "default" || who.DomainName != "" {
		t.Errorf("it logs in with %+v, %v", who, err)
	}
	if got := scopeOf(t, c); got != `{"project":{"domain":{"id":"default"},"name":"project"}}` {
		t.Errorf("its token is for %s", got)
	}
}

// scopeOf returns the scope of tokens in the format of Keystone.
func scopeOf(t *testing.T, c Config) string {
	t.Helper()
	login, err := c.readLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	scope, err := login.Credentials.ToTokenV3ScopeMap()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(scope)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestProjectOfAUser: a project is selected by its ID, or by its name in a domain, which defaults to the domain of the user.
func TestProjectOfAUser(t *testing.T) {
	for want, i := range map[string]Identity{
		`{"project":{"id":"p-1"}}`:                                      {ProjectID: "p-1", ProjectName: "project", ProjectDomainName: "other"},
		`{"project":{"domain":{"name":"Default"},"name":"project"}}`:    {ProjectName: "project"},
		`{"project":{"domain":{"name":"theirs"},"name":"project"}}`:     {ProjectName: "project", UserDomainName: "theirs"},
		`{"project":{"domain":{"name":"other"},"name":"project"}}`:      {ProjectName: "project", UserDomainName: "theirs", ProjectDomainName: "other"},
		`{"project":{"domain":{"name":"of-project"},"name":"project"}}`: {ProjectName: "project", UserDomainID: "d-1", ProjectDomainName: "of-project"},
		`{"project":{"domain":{"id":"of-the-user"},"name":"project"}}`:  {ProjectName: "project", UserDomainID: "of-the-user"},
		`null`: {ProjectName: "project", ApplicationCredentialID: "app-1", ApplicationCredentialSecret: config.Literal("s")},
	} {
		i.Username, i.Password = "u", config.Literal("p")
		if got := scopeOf(t, Config{Identity: i}); got != want {
			t.Errorf("%+v: tokens are for %s, want %s", i, got, want)
		}
	}
}

// TestDoctor: for each mistake, the command doctor reports what to check.
func TestDoctor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mistake func(h *home)
		want    string // "": all is well
	}{
		"no mistake":                 {func(*home) {}, ""},
		"another password":           {func(h *home) { h.config.Identity.Password = config.Literal("wrong") }, "look at the credentials"},
		"another region":             {func(h *home) { h.config.Region = "RegionTwo" }, `look at region "RegionTwo" and interface`},
		"nobody listens":             {func(h *home) { h.config.Identity.AuthURL = "https://127.0.0.1:1/v3" }, "check authURL"},
		"a name that nobody has":     {func(h *home) { h.config.Identity.AuthURL = "https://keystone.invalid/v3" }, "check authURL"},
		"a Zun that is too old":      {func(h *home) { h.cloud.Newest = "1.32" }, "upgrade it"},
		"a policy that forbids logs": {func(h *home) { h.forbid("logs") }, "read the log: 403 Forbidden: the policy: the policy of Zun does not let this user do it"},
		"a policy that forbids stop": {func(h *home) { h.forbid("stop") }, "stop container: 403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			c.mistake(h)
			err := h.open().Examine(t.Context())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("it says: %v; want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "the-password") {
				t.Errorf("it says the password: %v", err)
			}
		})
	}
}

func (h *home) forbid(operation string) {
	h.cloud.front.Break(emulator.Fault{Operations: []string{operation}, Answer: zun.Refuse(http.StatusForbidden, "policy-not-authorized", "the policy")})
}
