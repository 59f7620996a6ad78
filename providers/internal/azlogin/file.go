// SPDX-License-Identifier: Apache-2.0

package azlogin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// File is an azure.json, as on machines of AKS.
type File struct {
	Cloud                  string        `json:"cloud"`
	TenantID               string        `json:"tenantId"`
	SubscriptionID         string        `json:"subscriptionId"`
	AADClientID            string        `json:"aadClientId"`
	AADClientSecret        config.Secret `json:"aadClientSecret,omitzero"`
	ResourceGroup          string        `json:"resourceGroup"`
	Location               string        `json:"location"`
	VNetName               string        `json:"vnetName"`
	VNetResourceGroup      string        `json:"vnetResourceGroup"`
	UserAssignedIdentityID string        `json:"userAssignedIdentityID"`

	// Fields of a file of `az ad sp create-for-rbac --sdk-auth`.
	ClientID     string        `json:"clientId"`
	ClientSecret config.Secret `json:"clientSecret,omitzero"`
}

// ReadFile reads the file of the credentials, and takes missing values from it. AKS writes "msi" for the client
// of a managed identity.
func (k *Credentials) ReadFile() (File, error) {
	var f File
	data, err := os.ReadFile(k.File)
	if err != nil {
		return f, fmt.Errorf("credentials.file: %w", err)
	}
	if err := json.Unmarshal(WithoutMark(data), &f); err != nil { // the error may quote the file
		return f, fmt.Errorf("credentials.file: %s is no JSON as AKS or az writes it", k.File)
	}
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
	return f, nil
}

// WithoutMark returns the contents of a file without the byte order mark of Windows.
func WithoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }
