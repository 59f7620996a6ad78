// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

func good() Config {
	return Config{SubscriptionID: "sub-1", ResourceGroup: "pods", Region: "westeurope", ClusterName: "home-1"}
}

func TestConfigurations(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string // "" means no error
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
			c.Credentials = azlogin.Credentials{TenantID: "t", ClientID: "c", TokenFile: "f", ClientSecret: config.Literal("s")}
		}, "are two"},
		{"a subnet without a network", func(c *Config) { c.Network.Subnet = "s" }, "network"},
		{"a public subnet", func(c *Config) { c.Network = Network{VNet: "v", Subnet: "s", Public: new(true)} }, "network.public"},
		{"DNS without a subnet", func(c *Config) { c.Network.ClusterDNS = "10.0.0.10" }, "network.clusterDNS"},
		{"DNS that is no address", func(c *Config) { c.Network = Network{VNet: "v", Subnet: "s", ClusterDNS: "x"} }, "network.clusterDNS"},
		{"a kube-proxy with no range", func(c *Config) {
			c.Network = Network{VNet: "v", Subnet: "s", KubeProxy: KubeProxy{APIServer: "a", ClusterCIDR: "x"}}
		}, "network.kubeProxy.clusterCIDR"},
		{"a kube-proxy without a subnet", func(c *Config) { c.Network.KubeProxy.Kubeconfig = config.Literal("k") }, "network.kubeProxy: "},
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
		`Regin = "x"`: "old.toml: Regin", `SubnetCIDR = "10.0.0.0/24"`: "delegate", `OperatingSystem = "Windows"`: "Linux", `CPU = "much"`: "amount", `Region = "x`: "line 1",
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

// This is the environment of a node that the chart makes in AKS, with a subnet and a workspace. Source:
// github.com/virtual-kubelet/azure-aci, charts/virtual-kubelet/templates/deployment.yaml and secrets.yaml,
// pkg/auth/auth_config.go.
func TestPublishedD11EnvironmentOfTheChartOfAzureACI(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, value := range map[string]string{
		"AKS_CREDENTIAL_LOCATION": write("azure.json", `{"cloud": "AzureChinaCloud", "tenantId": "t", "subscriptionId": "s", "aadClientId": "msi", "aadClientSecret": "msi", "resourceGroup": "g", "location": "chinaeast2", "vnetName": "v", "vnetResourceGroup": "nets", "userAssignedIdentityID": "u"}`),
		"AZURE_TENANT_ID":         "", "AZURE_SUBSCRIPTION_ID": "", "AZURE_CLIENT_ID": "", "AZURE_CLIENT_SECRET": "", // values that nobody gave
		"ACI_RESOURCE_GROUP": "", "ACI_REGION": "", "ACI_VNET_SUBSCRIPTION_ID": "", "ACI_VNET_RESOURCE_GROUP": "", "ACI_VNET_NAME": "",
		"ACI_SUBNET_NAME": "virtual-node-aci", "ACI_SUBNET_CIDR": "10.241.0.0/16", "KUBE_DNS_IP": "10.0.0.10", "MASTER_URI": "https://cluster.example:443",
		"LOG_ANALYTICS_AUTH_LOCATION":        write("loganalytics.json", "\ufeff"+`{"workspaceID": "w","workspaceKey": "hidden-1"}`),
		"VIRTUALNODE_USER_IDENTITY_CLIENTID": "mine",
	} {
		t.Setenv(name, value)
	}
	load := func() (Config, error) {
		c, err := LoadConfig("")
		if err != nil {
			return c, err
		}
		return c.complete()
	}
	_, err := load()
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "clusterName") || !strings.Contains(err.Error(), "or in ACI_CLUSTER_NAME") {
		t.Errorf("got %v, want the one setting that is new", err)
	}
	t.Setenv("ACI_CLUSTER_NAME", "home-1")
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.ResourceGroup, c.Region, c.Network.id(), c.Network.ClusterDNS, c.Credentials.IdentityClientID, c.LogAnalytics.WorkspaceID, c.LogAnalytics.WorkspaceKey.Value(t.Context()),
		c.Cloud.Endpoint, c.Cloud.Audience, c.Cloud.Authority, c.Network.KubeProxy.APIServer}
	want := []string{"g", "chinaeast2", "/subscriptions/s/resourceGroups/nets/providers/Microsoft.Network/virtualNetworks/v/subnets/virtual-node-aci", "10.0.0.10", "mine", "w", "hidden-1",
		"https://management.chinacloudapi.cn", "https://management.core.chinacloudapi.cn/", "https://login.chinacloudapi.cn", "https://cluster.example:443"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for file, text := range map[string]string{"azure.json": `{"cloud": "AzureMoonCloud"}`, "loganalytics.json": `hidden-1`} {
		write(file, text)
		if _, err := load(); err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "hidden-1") {
			t.Errorf("%s: got %v", file, err)
		}
		write(file, "{}") // the files come in any order
	}
	// Outside of AKS there is a file of `az ad sp create-for-rbac --sdk-auth`, which begins with a byte order
	// mark on Windows.
	t.Setenv("AKS_CREDENTIAL_LOCATION", "")
	t.Setenv("LOG_ANALYTICS_AUTH_LOCATION", "")
	t.Setenv("ACI_SUBNET_NAME", "")
	t.Setenv("KUBE_DNS_IP", "")
	t.Setenv("ACI_RESOURCE_GROUP", "pods")
	t.Setenv("ACI_REGION", "westus")
	t.Setenv("AZURE_AUTH_LOCATION", write("credentials.json", "\ufeff"+`{ "clientId": "c", "clientSecret": "hidden-2", "subscriptionId": "s", "tenantId": "t", "activeDirectoryEndpointUrl": "https://login.microsoftonline.com/" }`))
	if c, err = load(); err != nil || c.Credentials.ClientID != "c" || c.Credentials.ClientSecret.Value(t.Context()) != "hidden-2" || c.Cloud.Authority != "https://login.microsoftonline.com" {
		t.Errorf("got %+v, %v", c, err)
	}
}
