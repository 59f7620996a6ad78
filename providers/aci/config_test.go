// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

func good() Config {
	return Config{SubscriptionID: "sub-1", ResourceGroup: "pods", Region: "westeurope", ClusterName: "home-1"}
}

func TestConfigurations(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string // "" is none
	}{
		{"the least", func(*Config) {}, ""},
		{"no subscription", func(c *Config) { c.SubscriptionID = "" }, "subscriptionID"},
		{"a path for a group", func(c *Config) { c.ResourceGroup = "a/b" }, "resourceGroup"},
		{"no region", func(c *Config) { c.Region = "" }, "region"},
		{"a region with a space", func(c *Config) { c.Region = "West Europe" }, "region"},
		{"no name", func(c *Config) { c.ClusterName = "" }, "clusterName"},
		{"an endpoint without TLS", func(c *Config) { c.Cloud.Endpoint = "http://x" }, "cloud.endpoint"},
		{"an authority without TLS", func(c *Config) { c.Cloud.Authority = "http://x" }, "cloud.authority"},
		{"a priority", func(c *Config) { c.Priority = "spot" }, "priority"},
		{"an annotation", func(c *Config) { c.Annotations = []string{"x"} }, "annotations[0]"},
		{"known annotations", func(c *Config) { c.Annotations = known() }, ""},
		{"a workspace without a key", func(c *Config) { c.LogAnalytics.WorkspaceID = "w" }, "logAnalytics"},
		{"a secret without a client", func(c *Config) { c.Credentials.ClientSecret = config.Literal("s") }, "clientID"},
		{"two credentials", func(c *Config) {
			c.Credentials = Credentials{TenantID: "t", ClientID: "c", TokenFile: "f", ClientSecret: config.Literal("s")}
		}, "are two"},
		{"a subnet without a network", func(c *Config) { c.Network.Subnet = "s" }, "network"},
		{"a public subnet", func(c *Config) { c.Network = Network{VNet: "v", Subnet: "s", Public: true} }, "network.public"},
		{"DNS without a subnet", func(c *Config) { c.Network.ClusterDNS = "10.0.0.10" }, "network.clusterDNS"},
		{"DNS that is no address", func(c *Config) { c.Network = Network{VNet: "v", Subnet: "s", ClusterDNS: "x"} }, "network.clusterDNS"},
		{"too few requests", func(c *Config) { c.Requests.AtRest = 1 }, "requests.atRest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := good()
			c.change(&conf)
			_, err := conf.complete()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestVariablesOfAzureACI(t *testing.T) {
	for name, value := range map[string]string{
		"AZURE_SUBSCRIPTION_ID": "sub-1", "ACI_RESOURCE_GROUP": "pods", "ACI_REGION": "westeurope", "AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c",
		"AZURE_CLIENT_SECRET": "hidden-1", "ACI_VNET_NAME": "v", "ACI_VNET_RESOURCE_GROUP": "nets", "ACI_SUBNET_NAME": "s", "KUBE_DNS_IP": "10.0.0.10",
		"ACI_QUOTA_CPU": "30", "ACI_QUOTA_MEMORY": "90Gi", "ACI_QUOTA_POD": "70", "VKUBELET_ACI_CAPACITY_EPHEMERAL_STORAGE": "900G", "LOG_ANALYTICS_ID": "w", "LOG_ANALYTICS_KEY": "k", "ACI_CLUSTER_NAME": "home-1",
	} {
		t.Setenv(name, value)
	}
	c, err := LoadConfig("")
	if err == nil {
		c, err = c.complete()
	}
	if err != nil {
		t.Fatal(err)
	}
	capacity := c.Capacity.resources()
	if c.Network.VNet != "v" || c.Network.ResourceGroup != "nets" || c.Network.SubscriptionID != "sub-1" || c.Network.ClusterDNS != "10.0.0.10" ||
		c.Credentials.ClientID != "c" || c.Credentials.ClientSecret.Value(t.Context()) != "hidden-1" || capacity.Pods().Value() != 70 || capacity.Cpu().Value() != 30 || capacity.StorageEphemeral().String() != "900G" {
		t.Errorf("got %+v", c)
	}
	if strings.Contains(fmt.Sprintf("%+v", c), "hidden-1") {
		t.Error("the secret is printed")
	}
}

func TestFilesOfAzureACI(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	c, err := LoadConfig(write("old.toml", "# of before\nRegion = \"westus\"\nResourceGroup = \"pods\" # ours\nOperatingSystem = \"Linux\"\nCPU = \"20\"\nMemory = \"100Gi\"\nPods = 20\n"))
	if err != nil || c.Region != "westus" || c.ResourceGroup != "pods" || c.Capacity.Pods.Value() != 20 {
		t.Errorf("got %+v, %v", c, err)
	}
	for line, want := range map[string]string{
		`Regin = "x"`: "old.toml:1: Regin", `SubnetCIDR = "10.0.0.0/24"`: "delegate", `OperatingSystem = "Windows"`: "Linux", "CPU = much": "amount", `Region = "x`: "no end",
	} {
		if _, err := LoadConfig(write("old.toml", line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", line, err, want)
		}
	}
	t.Setenv("AKS_CREDENTIAL_LOCATION", write("azure.json", `{"tenantId": "t", "subscriptionId": "s", "aadClientId": "msi", "aadClientSecret": "msi", "resourceGroup": "g", "location": "westus", "userAssignedIdentityID": "u"}`))
	if c, err = LoadConfig(""); err != nil || c.SubscriptionID != "s" || c.Region != "westus" || c.Credentials.IdentityClientID != "u" || c.Credentials.ClientSecret.IsSet() {
		t.Errorf("got %+v, %v", c, err)
	}
	t.Setenv("AKS_CREDENTIAL_LOCATION", write("azure.json", `hidden-1`))
	if _, err = LoadConfig(""); err == nil || strings.Contains(err.Error(), "hidden-1") {
		t.Errorf("got %v", err)
	}
}
