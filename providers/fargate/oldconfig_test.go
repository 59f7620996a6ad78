// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The names and values of the sample file.
// Source: github.com/virtual-kubelet/aws-fargate, fargate.toml.
const oldFile = `# of aws-fargate
Region = "us-east-1"
ClusterName = "default"
Subnets = ["subnet-12345678"]
SecurityGroups = ["sg-12345678"]
AssignPublicIPv4Address = false
ExecutionRoleArn = ""
CloudWatchLogGroupName = ""
PlatformVersion = "LATEST"
OperatingSystem = "Linux"
CPU = "20"
Memory = "40Gi"
Pods = "20"
`

func loadOld(t *testing.T, text string) (Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fargate.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(file)
	if err != nil {
		return c, err
	}
	return c.complete()
}

func TestPublishedD8FileOfAWSFargate(t *testing.T) {
	_, err := loadOld(t, oldFile)
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "or in VKUBELET_FARGATE_CLUSTER_NAME") || !strings.Contains(err.Error(), "or in VKUBELET_FARGATE_EXECUTION_ROLE") {
		t.Errorf("got %v, want the two settings that are new, with their variables", err)
	}
	t.Setenv("VKUBELET_FARGATE_CLUSTER_NAME", "home-1")
	t.Setenv("VKUBELET_FARGATE_EXECUTION_ROLE", "arn:aws:iam::123456789012:role/execution")
	c, err := loadOld(t, strings.Replace(oldFile, "Address = false", "Address = true", 1))
	if err != nil {
		t.Fatal(err)
	}
	got := []any{c.Region, c.Cluster, c.Subnets, c.SecurityGroups, c.PublicIP, c.PlatformVersion, c.LogGroup, c.Capacity.Cpu().String(), c.Capacity.Memory().String(), c.Capacity.Pods().String()}
	want := []any{"us-east-1", "default", []string{"subnet-12345678"}, []string{"sg-12345678"}, true, "LATEST", "", "20", "40Gi", "20"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if c, err = loadOld(t, "Region = \"us-east-1\"\nSubnets = [\"subnet-1\"]\n"); err != nil || c.Capacity.Memory().String() != "40Gi" {
		t.Errorf("the least of such a file: got %+v, %v", c, err)
	}
}
