// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Sources: github.com/virtual-kubelet/alibabacloud-eci, eci.toml, README.md (the five variables) and eci.go (ECI_QUOTA_…).
func TestPublishedD9FileAndVariablesOfAlibabaCloudECI(t *testing.T) {
	file := filepath.Join(t.TempDir(), "eci.toml")
	if err := os.WriteFile(file, []byte(`Region = "cn-hangzhou"
OperatingSystem = "Linux"
CPU = "20"
Memory = "100Gi"
Pods = "20"
ClusterName = "default"
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"ECI_REGION": "cn-shanghai", "ECI_SECURITY_GROUP": "sg-123", "ECI_VSWITCH": "vsw-123", "ECI_ACCESS_KEY": "123", "ECI_SECRET_KEY": "456",
	} {
		t.Setenv(name, value)
	}
	load := func(path string) (Config, error) {
		c, err := LoadConfig(path)
		if err != nil {
			return c, err
		}
		return c.complete()
	}
	c, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{c.Region, c.ClusterName, c.SecurityGroupID, c.VSwitchIDs, c.Capacity.Cpu().String(), c.Capacity.Memory().String(), c.Capacity.Pods().String(), c.AccessKeySecret.Value(t.Context())}
	want := []any{"cn-shanghai", "default", "sg-123", []string{"vsw-123"}, "20", "100Gi", "20", "456"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// With the variables alone, the error names each missing setting and its variable.
	_, err = load("")
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "ECI_CLUSTER_NAME") || !strings.Contains(err.Error(), "ECI_QUOTA_CPU") {
		t.Errorf("got %v", err)
	}
	for name, value := range map[string]string{"ECI_CLUSTER_NAME": "home-1", "ECI_QUOTA_CPU": "1000", "ECI_QUOTA_MEMORY": "4Ti", "ECI_QUOTA_POD": "1000"} {
		t.Setenv(name, value)
	}
	if c, err = load(""); err != nil || c.Capacity.Memory().String() != "4Ti" || c.Capacity.Pods().Value() != 1000 {
		t.Errorf("got %v, %v", c.Capacity, err)
	}
	t.Setenv("ECI_QUOTA_CPU", "much")
	if _, err := load(file); err == nil || !strings.Contains(err.Error(), `ECI_QUOTA_CPU is "much"`) {
		t.Errorf("got %v", err)
	}
}
