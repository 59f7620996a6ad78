// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/oldfile"
)

// fromTOML reads a configuration file of azure-aci.
func fromTOML(name string, data []byte) (Config, error) {
	c := Config{asAzureACI: true}
	err := oldfile.Read(name, data, map[string]oldfile.Setter{
		"ResourceGroup": oldfile.Text(&c.ResourceGroup), "Region": oldfile.Text(&c.Region), "SubnetName": oldfile.Text(&c.Network.Subnet),
		"CPU": oldfile.Quantity(&c.Capacity.CPU), "Memory": oldfile.Quantity(&c.Capacity.Memory), "Pods": oldfile.Quantity(&c.Capacity.Pods),
		"OperatingSystem": oldfile.Linux,
		"SubnetCIDR":      oldfile.Gone("this provider makes no subnets: make it, delegate it to Microsoft.ContainerInstance/containerGroups, and remove this line"),
	})
	return c, err
}

// withAzureFile takes missing values from an azure.json.
func (c Config) withAzureFile() (Config, error) {
	f, err := c.Credentials.ReadFile()
	if err != nil {
		return c, fmt.Errorf("aci provider: %w", err)
	}
	if err := c.Cloud.take(f.Cloud); err != nil {
		return c, fmt.Errorf("aci provider: credentials.file: %s: %w", c.Credentials.File, err)
	}
	c.SubscriptionID, c.ResourceGroup = cmp.Or(c.SubscriptionID, f.SubscriptionID), cmp.Or(c.ResourceGroup, f.ResourceGroup)
	c.Region = cmp.Or(c.Region, f.Location)
	if c.Network.Subnet != "" {
		c.Network.VNet, c.Network.ResourceGroup = cmp.Or(c.Network.VNet, f.VNetName), cmp.Or(c.Network.ResourceGroup, f.VNetResourceGroup)
	}
	return c, nil
}

// take fills missing values for the Azure cloud of that name. The names are those in files of AKS.
func (c *Cloud) take(name string) error {
	of, known := map[string]cloud.Configuration{
		"": cloud.AzurePublic, "AzurePublicCloud": cloud.AzurePublic, "AzureUSGovernmentCloud": cloud.AzureGovernment, "AzureChinaCloud": cloud.AzureChina,
	}[name]
	if !known && (c.Endpoint == "" || c.Authority == "") {
		return fmt.Errorf("cloud %q: is not known: set cloud.endpoint and cloud.authority", name)
	}
	if !known || of.ActiveDirectoryAuthorityHost == cloud.AzurePublic.ActiveDirectoryAuthorityHost {
		return nil // the settings are complete, or have the default value
	}
	if c.Endpoint == "" { // an audience goes with its endpoint
		c.Endpoint, c.Audience = of.Services[cloud.ResourceManager].Endpoint, cmp.Or(c.Audience, of.Services[cloud.ResourceManager].Audience)
	}
	c.Authority = cmp.Or(c.Authority, strings.TrimSuffix(of.ActiveDirectoryAuthorityHost, "/"))
	return nil
}

// withLogFile takes missing values from the file of azure-aci's LOG_ANALYTICS_AUTH_LOCATION.
func (c Config) withLogFile() (Config, error) {
	w := &c.LogAnalytics
	data, err := os.ReadFile(w.File)
	if err != nil {
		return c, fmt.Errorf("aci provider: logAnalytics.file: %w", err)
	}
	var f LogAnalytics
	if err := json.Unmarshal(azlogin.WithoutMark(data), &f); err != nil { // the error may quote the file
		return c, fmt.Errorf(`aci provider: logAnalytics.file: %s: want {"workspaceID": "…", "workspaceKey": "…"}`, w.File)
	}
	w.WorkspaceID = cmp.Or(w.WorkspaceID, f.WorkspaceID)
	if !w.WorkspaceKey.IsSet() {
		w.WorkspaceKey = f.WorkspaceKey
	}
	return c, nil
}
