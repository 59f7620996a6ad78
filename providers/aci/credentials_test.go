// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"net/http"
	"net/url"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/aci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

// TestIdentities checks logins without a secret: with the token of a service account, and with the identity of
// the machine.
func TestIdentities(t *testing.T) {
	for name, c := range map[string]struct {
		who    emulated.Principal
		config func(dir string, c *Config)
	}{
		"a workload identity": {emulated.Principal{Tenant: tenant, Client: clientID, Assertion: "assertion-1"}, func(dir string, c *Config) {
			c.Credentials = azlogin.Credentials{TenantID: tenant, ClientID: clientID, TokenFile: dir + "/token"}
		}},
		"the identity of the machine": {emulated.Principal{Client: clientID, Machine: true}, func(_ string, c *Config) { c.Credentials = azlogin.Credentials{} }},
		"one of several":              {emulated.Principal{Client: clientID, Machine: true}, func(_ string, c *Config) { c.Credentials = azlogin.Credentials{IdentityClientID: clientID} }},
	} {
		t.Run(name, func(t *testing.T) {
			a := testAzure(t)
			a.Principal(c.who, true)
			dir := t.TempDir()
			write(t, dir+"/token", "assertion-1")
			examine := func() error {
				conf := a.config("home-1")
				c.config(dir, &conf)
				through, err := azlogin.HTTPClient(a.caFile)
				if err != nil {
					return err
				}
				in := cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "aci"}}}, NodeName: "aci"}
				p, err := open(in, conf, pace{http: &http.Client{Transport: machine{through.Transport, a.url}}})
				if err != nil {
					return err
				}
				return p.Examine(t.Context())
			}
			if err := examine(); err != nil {
				t.Error(err)
			}
			a.Principal(emulated.Principal{Tenant: "other", Client: "other", Secret: "other"}, true)
			if err := examine(); err == nil {
				t.Error("another identity is let in")
			}
		})
	}
}

// machine has the metadata service of an Azure machine.
type machine struct {
	next http.RoundTripper
	url  string
}

// RoundTrip implements http.RoundTripper.
func (m machine) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == "169.254.169.254" {
		r = r.Clone(r.Context())
		to, err := url.Parse(m.url)
		if err != nil {
			return nil, err
		}
		r.URL.Scheme, r.URL.Host, r.Host = to.Scheme, to.Host, to.Host
	}
	return m.next.RoundTrip(r)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
