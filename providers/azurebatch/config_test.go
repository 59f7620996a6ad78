// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodConfig = `apiVersion: azurebatch.virtual-kubelet.io/v1alpha1
kind: AzureBatchProviderConfiguration
account: batch1
location: westeurope
pool: pods
clusterName: home-1
storage:
  containerURL: https://store1.blob.core.windows.net/pods
  identity: /subscriptions/S/resourceGroups/G/providers/Microsoft.ManagedIdentity/userAssignedIdentities/pods
`

func loaded(t *testing.T, text string) (Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "batch.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(file)
	if err != nil {
		return c, err
	}
	return c.complete()
}

// TestConfig checks the defaults, and that each mistake is reported with its field.
func TestConfig(t *testing.T) {
	c, err := loaded(t, goodConfig)
	if err != nil || c.Endpoint != "https://batch1.westeurope.batch.azure.com" || c.Containers != "unpack" || c.runtimeName() != "unpack" || c.Cloud.Authority != "https://login.microsoftonline.com" {
		t.Errorf("got %+v, %v", c, err)
	}
	for old, fresh := range map[string]string{
		"account: batch1":     "endpoint: http://batch1",
		"pool: pods":          "pool: a/b",
		"clusterName: home-1": "clusterName: Home_1",
		"containerURL: https://store1.blob.core.windows.net/pods": "containerURL: https://store1.blob.core.windows.net/pods?sig=x",
		"identity: /subscriptions/S":                              "identity: pods",
		"kind: AzureBatchProviderConfiguration\n":                 "kind: AzureBatchProviderConfiguration\ncontainers: docker\n",
		"location: westeurope\n":                                  "location: westeurope\nmaxNodes: -1\n",
		"location: westeurope":                                    "location: westeurope\nnodeResources: {pods: 1}",
		"account: batch1\n":                                       "account: batch1\ncredentials: {clientSecret: s}\n",
		"account":                                                 "gpus: {resource: gpu}\naccount",
		"\npool":                                                  "\ngpus: {resource: vendor.example/gpu, perNode: -1}\npool",
	} {
		field, _, _ := strings.Cut(fresh, ":")
		if i := strings.LastIndex(fresh[:strings.LastIndex(fresh, ":")+1], "\n"); i >= 0 {
			field, _, _ = strings.Cut(fresh[i+1:], ":")
		}
		if _, err := loaded(t, strings.Replace(goodConfig, old, fresh, 1)); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v, want a problem of %s", fresh, err, field)
		}
	}
}

// TestEnvironmentOfAzureBatch: the variables of the older provider are read.
func TestEnvironmentOfAzureBatch(t *testing.T) {
	for name, value := range map[string]string{
		"AZURE_BATCH_ACCOUNT_NAME": "batch1", "AZURE_BATCH_ACCOUNT_LOCATION": "westeurope", "AZURE_BATCH_POOLID": "pods",
		"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s",
	} {
		t.Setenv(name, value)
	}
	c, err := LoadConfig("")
	if err != nil || c.Account != "batch1" || c.Location != "westeurope" || c.Pool != "pods" || c.Credentials.TenantID != "t" || c.Credentials.ClientID != "c" ||
		c.Credentials.ClientSecret.Value(t.Context()) != "s" {
		t.Errorf("got %+v, %v", c, err)
	}
}
