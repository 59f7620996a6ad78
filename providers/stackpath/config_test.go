// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sshexec"
)

func wellFormed() Config {
	return Config{
		Endpoint: "https://api.example.com", StackID: "s", ClientID: "c", ClientSecret: config.Literal("x"), ClusterName: "home", CityCode: "ORD",
		Capacity: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("5")},
	}
}

// TestNoDefaultHost: a secret only goes to configured hosts. The service has closed, and its domain may have another owner.
func TestNoDefaultHost(t *testing.T) {
	c := wellFormed()
	c.Endpoint = ""
	if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), "endpoint: ") {
		t.Errorf("without an endpoint: %v", err)
	}
	c = wellFormed()
	c.Console.HostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ"
	if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), "console: ") {
		t.Errorf("a console without an address: %v", err)
	}
	c.Console = sshexec.Server{Address: "console.example.com:22"}
	if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), "console: ") {
		t.Errorf("a console without a key: %v", err)
	}
	for _, name := range []string{"SP_STACK_ID", "SP_CLIENT_ID", "SP_CLIENT_SECRET", "SP_CITY_CODE"} { // all settings that the old provider needed
		t.Setenv(name, "abc")
	}
	t.Setenv("SP_API_HOST", "")
	if p, err := Provider().New(t.Context(), cli.ProviderInput{}); err == nil || !strings.Contains(err.Error(), "endpoint: ") {
		t.Errorf("with the variables of the old provider: %v, %v", p, err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"stackpath" + ".com", "edgeengine" + ".io", "stackpath" + ".dev"} {
			if strings.Contains(string(data), host) {
				t.Errorf("%s has the host %s", file, host)
			}
		}
	}
}

func TestProblems(t *testing.T) {
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ"
	for name, c := range map[string]struct {
		change func(*Config)
		want   string // "": it is well
	}{
		"as it is":         {func(*Config) {}, ""},
		"a host alone":     {func(c *Config) { c.Endpoint = "api.example.com" }, ""},
		"no TLS":           {func(c *Config) { c.Endpoint = "http://api.example.com" }, "endpoint: "},
		"no stack":         {func(c *Config) { c.StackID = "" }, "stackID: is missing"},
		"no client":        {func(c *Config) { c.ClientID = "" }, "clientID: is missing"},
		"no secret":        {func(c *Config) { c.ClientSecret = config.Secret{} }, "clientSecret: is missing"},
		"no city":          {func(c *Config) { c.CityCode = "" }, "cityCode: is missing"},
		"no cluster":       {func(c *Config) { c.ClusterName = "" }, "clusterName: "},
		"no capacity":      {func(c *Config) { c.Capacity = nil }, "capacity: is missing"},
		"a console":        {func(c *Config) { c.Console = sshexec.Server{Address: "console.example.com:22", HostKey: key} }, ""},
		"a key that is no": {func(c *Config) { c.Console = sshexec.Server{Address: "console.example.com:22", HostKey: "SHA256:abc"} }, "console: "},
	} {
		t.Run(name, func(t *testing.T) {
			conf := wellFormed()
			c.change(&conf)
			got, err := conf.complete()
			if c.want == "" && (err != nil || !strings.HasPrefix(got.Endpoint, "https://")) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestVariablesOfTheOldProvider checks that the variables of the old provider are read.
func TestVariablesOfTheOldProvider(t *testing.T) {
	for name, value := range map[string]string{"SP_STACK_ID": "s", "SP_CLIENT_ID": "c", "SP_CLIENT_SECRET": "x", "SP_API_HOST": "api.example.com", "SP_CITY_CODE": "ord"} {
		t.Setenv(name, value)
	}
	c, err := LoadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	c.ClusterName, c.Capacity = "home", wellFormed().Capacity
	c, err = c.complete()
	if err != nil || c.StackID != "s" || c.ClientID != "c" || c.ClientSecret.Value(t.Context()) != "x" || c.Endpoint != "https://api.example.com" || c.CityCode != "ORD" {
		t.Errorf("got %+v, %v", c, err)
	}
}

// TestNoRedirects: a redirect does not forward the secret.
func TestNoRedirects(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.open()
	other := newHome(t)
	for _, operation := range []string{"Token", "GetWorkloads"} {
		mend := h.region.front.Break(faultOf(operation, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.region.web.URL+r.URL.String(), http.StatusTemporaryRedirect)
		}))
		if _, err := p.driver.List(t.Context()); err == nil {
			t.Errorf("%s: it follows", operation)
		}
		mend()
	}
	if got := other.region.front.Requests(); len(got) != 0 {
		t.Errorf("the other host got %d requests", len(got))
	}
}
