// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator/ecs"
)

// TestExamine makes mistakes that doctor is to find, each with what to do.
func TestExamine(t *testing.T) {
	for name, c := range map[string]struct {
		cloud  func(*ecs.Config)
		config func(*Config)
		env    [2]string
		fault  emulator.Fault
		want   string // "" is well
	}{
		"well":            {},
		"wrong region":    {config: func(c *Config) { c.Region = "eu-west-1" }, want: "scoped to a valid region"},
		"wrong cluster":   {config: func(c *Config) { c.Cluster = "other" }, want: "make it, or configure cluster and region"},
		"wrong log group": {config: func(c *Config) { c.LogGroup = "/other" }, want: "make the group, or configure logGroup"},
		"no server":       {config: func(c *Config) { c.Endpoint = "http://127.0.0.1:1" }, want: "connection refused"},
		"missing right": {cloud: func(c *ecs.Config) {
			c.Keys[testKey] = ecs.Key{Secret: testSecret, Allow: []string{"ecs:DescribeClusters"}}
		}, want: "the policy is in the README"},
		"expired credential":  {cloud: func(c *ecs.Config) { c.Keys[testKey] = ecs.Key{Secret: testSecret, Expires: time.Unix(1, 0)} }, want: "have expired: renew them"},
		"clock skew":          {cloud: func(c *ecs.Config) { c.Now = func() time.Time { return time.Now().Add(time.Hour) } }, want: "the clock of this machine is off"},
		"unknown key":         {env: [2]string{"AWS_ACCESS_KEY_ID", "AKIDOTHER"}, want: "the credentials are not known"},
		"wrong secret":        {env: [2]string{"AWS_SECRET_ACCESS_KEY", "other"}, want: "the secret key is another one"},
		"a token too many":    {env: [2]string{"AWS_SESSION_TOKEN", "other"}, want: "the credentials are not known"},
		"throttled":           {fault: emulator.Fault{Answer: ecs.Throttled}, want: "Rate exceeded"},
		"a service that ails": {fault: emulator.Fault{Answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusServiceUnavailable) }}, want: "503"},
	} {
		t.Run(name, func(t *testing.T) {
			change := c.cloud
			if change == nil {
				change = func(*ecs.Config) {}
			}
			cloud := cloudOf(t, change)
			if c.env[0] != "" {
				t.Setenv(c.env[0], c.env[1])
			}
			if c.fault.Answer != nil {
				cloud.Break(c.fault)
			}
			conf, err := cloud.config("home")
			if err != nil {
				t.Fatal(err)
			}
			if c.config != nil {
				c.config(&conf)
			}
			p, err := newProvider(t.Context(), cli.ProviderInput{NodeName: "node"}, conf, quick)
			if err != nil {
				t.Fatal(err)
			}
			defer p.service.close()
			if err := p.Examine(t.Context()); (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), testSecret)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
