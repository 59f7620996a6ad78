// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const testRole = "arn:aws:iam::123456789012:role/reader"

// testConfig returns a complete configuration with the given change.
func testConfig(t *testing.T, change func(*Config)) Config {
	t.Helper()
	c := Config{
		Region: "eu-central-1", ClusterID: "home", Subnets: []string{"subnet-1"}, SecurityGroups: []string{"sg-1"},
		ExecutionRole: "arn:aws:iam::123456789012:role/execution", TaskRoles: []string{testRole}, FileSystems: []string{"fs-0123456789abcdef0"}, LogGroup: "/vk/home",
		RegistryCredentials: map[string]string{"registry.example": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:pull"},
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("20"), corev1.ResourceMemory: resource.MustParse("40Gi"), corev1.ResourcePods: resource.MustParse("20"),
		},
	}
	if change != nil {
		change(&c)
	}
	c, err := c.complete()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConfigRefusesWhatCannotBe(t *testing.T) {
	good := testConfig(t, nil)
	for want, change := range map[string]func(*Config){
		"region: is missing":                     func(c *Config) { c.Region = "" },
		"clusterName":                            func(c *Config) { c.ClusterID = "Home 1" },
		`endpoint: "http://ecs.example"`:         func(c *Config) { c.Endpoint = "http://ecs.example" },
		"subnets: 0":                             func(c *Config) { c.Subnets = nil },
		"securityGroups: 6":                      func(c *Config) { c.SecurityGroups = make([]string, 6) },
		`architecture: "arm"`:                    func(c *Config) { c.Architecture = "arm" },
		`capacityProvider: "SPOT"`:               func(c *Config) { c.CapacityProvider = "SPOT" },
		`executionRole: "execution"`:             func(c *Config) { c.ExecutionRole = "execution" },
		`taskRoles[0]: "arn:aws:iam::1:user/me"`: func(c *Config) { c.TaskRoles = []string{"arn:aws:iam::1:user/me"} },
		`fileSystems[1]: "fs-1"`:                 func(c *Config) { c.FileSystems = []string{"fs-01234567", "fs-1"} },
		`snapshots[1]: "vol-01234567"`:           func(c *Config) { c.Snapshots = []string{"snap-01234567", "vol-01234567"} },
		"largestVolume: is -1Gi":                 func(c *Config) { c.LargestVolume = resource.MustParse("-1Gi") },
		"largestVolume: is 200":                  func(c *Config) { c.LargestVolume = resource.MustParse("200") },
		"registryCredentials[r.example]":         func(c *Config) { c.RegistryCredentials = map[string]string{"r.example": "secret"} },
		"capacity.pods: is missing": func(c *Config) {
			c.Capacity = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
		},
	} {
		c := good
		change(&c)
		if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	if good.LargestVolume.String() != "200Gi" || len(good.Snapshots) > 0 {
		t.Errorf("got the defaults %s, %q", good.LargestVolume.String(), good.Snapshots)
	}
	if good.Cluster != "default" || good.PlatformVersion != "LATEST" || good.CapacityProvider != "" {
		t.Errorf("got the defaults %q, %q, %q", good.Cluster, good.PlatformVersion, good.CapacityProvider)
	}
}

func TestConfigIsLoaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fargate.yaml")
	text := "apiVersion: " + APIVersion + "\nkind: " + Kind + "\ncluster: prod\nsubnets: [a, b]\ncapacity: {cpu: 4}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("VKUBELET_FARGATE_CLUSTER_NAME", "home")
	c, err := LoadConfig(path)
	if err != nil || c.Cluster != "prod" || len(c.Subnets) != 2 || c.Region != "us-east-1" || c.ClusterID != "home" {
		t.Errorf("got %+v, %v", c, err)
	}
}
