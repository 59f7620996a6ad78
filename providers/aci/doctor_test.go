// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/aci"
)

func without(action string) []string {
	return slices.DeleteFunc(slices.Clone(role), func(s string) bool { return s == action })
}

// TestDoctor makes mistakes in configurations and accounts. The command doctor must find each of them: its
// message says what to do, without secrets, and nothing is created.
func TestDoctor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config func(*Config)
		fault  func(*azure)
		wants  []string // none: there are no problems
	}{
		"no mistake":                   {},
		"another subscription":         {config: func(c *Config) { c.SubscriptionID = "sub-2" }, wants: []string{"SubscriptionNotFound", "look at subscriptionID"}},
		"a resource group that is not": {config: func(c *Config) { c.ResourceGroup = "none" }, wants: []string{"ResourceGroupNotFound", "make resourceGroup"}},
		"another region":               {config: func(c *Config) { c.Region = "westus" }, wants: []string{"look at region"}},
		"a wrong secret":               {config: func(c *Config) { c.Credentials.ClientSecret = config.Literal("canary-wrong") }, wants: []string{"the secret of the service principal is wrong"}},
		"a secret that has expired":    {fault: func(a *azure) { a.ExpireSecret() }, wants: []string{"has expired", "make a new one"}},
		"another client":               {config: func(c *Config) { c.Credentials.ClientID = "client-2" }, wants: []string{"credentials.clientID"}},
		"another tenant":               {config: func(c *Config) { c.Credentials.TenantID = "tenant-2" }, wants: []string{"credentials.tenantID"}},
		"another audience":             {config: func(c *Config) { c.Cloud.Audience = "https://other.example" }, wants: []string{"wrong audience", "cloud.audience"}},
		"no right to list":             {fault: func(a *azure) { a.Role = without(emulated.ActionRead) }, wants: []string{emulated.ActionRead, "the role of its README"}},
		"no right to create":           {fault: func(a *azure) { a.Role = without(emulated.ActionWrite) }, wants: []string{emulated.ActionWrite, "the role of its README"}},
		"no right to delete":           {fault: func(a *azure) { a.Role = without(emulated.ActionDelete) }, wants: []string{emulated.ActionDelete, "the role of its README"}},
		"no rights to logs and exec": {fault: func(a *azure) {
			a.Role = slices.DeleteFunc(without(emulated.ActionLogs), func(s string) bool { return s == emulated.ActionExec })
		}, wants: []string{emulated.ActionLogs, emulated.ActionExec}},
		"no right to join the subnet": {fault: func(a *azure) { a.Role = without(emulated.ActionJoin) }, wants: []string{emulated.ActionJoin, "on the virtual network too"}},
		"a subnet that is not delegated": {config: func(c *Config) { c.Network.Subnet = "pods-plain" }, wants: []string{
			"az network vnet subnet update --resource-group pods --vnet-name net --name pods-plain --delegations Microsoft.ContainerInstance/containerGroups"}},
		"a subnet that is not there":   {config: func(c *Config) { c.Network.Subnet = "none" }, wants: []string{"look at network.vnet"}},
		"a quota that is used up":      {fault: func(a *azure) { a.Quota = -1 }, wants: []string{"the quota of -1 container groups in westeurope is used up"}},
		"a quota below the capacity":   {config: func(c *Config) { c.Capacity.Pods.Set(30) }, fault: func(a *azure) { a.Quota = 20 }, wants: []string{"capacity.pods is 30, and the quota in westeurope has room for 20"}},
		"a quota that may not be seen": {fault: func(a *azure) { a.Role = without(emulated.ActionUsage) }},
		"no right to metrics":          {fault: func(a *azure) { a.Role = without(emulated.ActionMetrics) }, wants: []string{emulated.ActionMetrics}},
		"ACI is not registered": {fault: func(a *azure) { a.answers(refuses(http.StatusConflict, "MissingSubscriptionRegistration", nil))(true) },
			wants: []string{"az provider register"}},
		"a subscription that is disabled": {fault: func(a *azure) { a.answers(refuses(http.StatusConflict, "ReadOnlyDisabledSubscription", nil))(true) },
			wants: []string{"is disabled"}},
		"a clock that is wrong": {fault: func(a *azure) {
			a.answers(refuses(http.StatusUnauthorized, "InvalidAuthenticationToken", map[string]string{"Date": time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}))(true)
		}, wants: []string{"the clock of this machine is", "off that of Azure: set it"}},
		"an authority that is not known": {config: func(c *Config) { c.Cloud.CAFile = "" }, wants: []string{"check cloud.caFile"}},
		"nobody listens":                 {config: func(c *Config) { c.Cloud.Endpoint = "https://127.0.0.1:1" }, wants: []string{"connection refused", "check cloud"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := testAzure(t)
			if c.fault != nil {
				c.fault(a)
			}
			err := a.provider(t, c.config).Examine(t.Context())
			if len(c.wants) == 0 && err != nil {
				t.Errorf("nothing is wrong, and it says: %v", err)
			}
			for _, want := range c.wants {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("it has a secret: %v", err)
			}
			if a.ID(nobody) != "" {
				t.Error("it has made a group")
			}
		})
	}
}
