// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// fromTOML reads the file that azure-aci had: names and values, one a line.
func fromTOML(name string, data []byte) (Config, error) {
	var c Config
	var problems []error
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := c.setOld(line); err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", name, i+1, err))
		}
	}
	return c, errors.Join(problems...)
}

// setOld sets what a line of such a file says.
func (c *Config) setOld(line string) error {
	key, text, ok := strings.Cut(line, "=")
	if !ok {
		return errors.New("want a line such as Region = \"westeurope\", or a file with apiVersion and kind")
	}
	key, text = strings.TrimSpace(key), strings.TrimSpace(text)
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return fmt.Errorf("%s: the text has no end", key)
		}
		if rest := strings.TrimSpace(text[len(quoted):]); rest != "" && !strings.HasPrefix(rest, "#") {
			return fmt.Errorf("%s: want nothing after the text", key)
		}
		if text, err = strconv.Unquote(quoted); err != nil {
			return fmt.Errorf("%s: the text is not understood", key)
		}
	} else {
		text, _, _ = strings.Cut(text, "#")
		text = strings.TrimSpace(text)
	}
	quantity := func(into *resource.Quantity) error {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return fmt.Errorf("%s: %q: want an amount, such as 20 or 100Gi", key, text)
		}
		*into = q
		return nil
	}
	switch key {
	case "ResourceGroup":
		c.ResourceGroup = text
	case "Region":
		c.Region = text
	case "SubnetName":
		c.Network.Subnet = text
	case "CPU":
		return quantity(&c.Capacity.CPU)
	case "Memory":
		return quantity(&c.Capacity.Memory)
	case "Pods":
		return quantity(&c.Capacity.Pods)
	case "OperatingSystem":
		if text != "Linux" {
			return fmt.Errorf("OperatingSystem: %q: groups of this provider run Linux", text)
		}
	case "SubnetCIDR":
		return errors.New("SubnetCIDR: this provider makes no subnets: make it, delegate it to Microsoft.ContainerInstance/containerGroups, and remove this line")
	default:
		return fmt.Errorf("%s: is not known; known are ResourceGroup, Region, OperatingSystem, CPU, Memory, Pods, SubnetName", key)
	}
	return nil
}

// azureFile is an azure.json, as AKS has it on its machines.
type azureFile struct {
	TenantID               string        `json:"tenantId"`
	SubscriptionID         string        `json:"subscriptionId"`
	AADClientID            string        `json:"aadClientId"`
	AADClientSecret        config.Secret `json:"aadClientSecret,omitzero"`
	ResourceGroup          string        `json:"resourceGroup"`
	Location               string        `json:"location"`
	VNetName               string        `json:"vnetName"`
	VNetResourceGroup      string        `json:"vnetResourceGroup"`
	UserAssignedIdentityID string        `json:"userAssignedIdentityID"`

	// Of a file as `az ad sp create-for-rbac --sdk-auth` writes it.
	ClientID     string        `json:"clientId"`
	ClientSecret config.Secret `json:"clientSecret,omitzero"`
}

// withAzureFile takes from an azure.json what is not said otherwise. AKS writes "msi" for the client of a managed identity.
func (c Config) withAzureFile() (Config, error) {
	data, err := os.ReadFile(c.Credentials.File)
	if err != nil {
		return c, fmt.Errorf("aci provider: credentials.file: %w", err)
	}
	var f azureFile
	if err := json.Unmarshal(data, &f); err != nil { // the error may quote what the file has
		return c, fmt.Errorf("aci provider: credentials.file: %s is no JSON as AKS or az writes it", c.Credentials.File)
	}
	c.SubscriptionID, c.ResourceGroup = cmp.Or(c.SubscriptionID, f.SubscriptionID), cmp.Or(c.ResourceGroup, f.ResourceGroup)
	c.Region = cmp.Or(c.Region, f.Location)
	if c.Network.Subnet != "" {
		c.Network.VNet, c.Network.ResourceGroup = cmp.Or(c.Network.VNet, f.VNetName), cmp.Or(c.Network.ResourceGroup, f.VNetResourceGroup)
	}
	k := &c.Credentials
	k.TenantID, k.IdentityClientID = cmp.Or(k.TenantID, f.TenantID), cmp.Or(k.IdentityClientID, f.UserAssignedIdentityID)
	if id := cmp.Or(f.AADClientID, f.ClientID); id != "msi" {
		k.ClientID = cmp.Or(k.ClientID, id)
		secret := f.AADClientSecret
		if !secret.IsSet() {
			secret = f.ClientSecret
		}
		if !k.ClientSecret.IsSet() && k.TokenFile == "" {
			k.ClientSecret = secret
		}
	}
	return c, nil
}
