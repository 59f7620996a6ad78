// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestConfigRefusesWhatCannotBe(t *testing.T) {
	with := func(change func(*Config)) Config {
		c := Config{ClusterName: "a", ForeignClusterID: "b", TenantNamespace: "liqo-tenant-b"}
		change(&c)
		return c
	}
	for want, c := range map[string]Config{
		"clusterName:":            with(func(c *Config) { c.ClusterName = "" }),
		"foreignClusterID: \"B\"": with(func(c *Config) { c.ForeignClusterID = "B" }),
		"foreignClusterID: is":    with(func(c *Config) { c.ForeignClusterID = "a" }),
		"tenantNamespace: is":     with(func(c *Config) { c.TenantNamespace = "" }),
		"homeKubeconfig: reads": with(func(c *Config) {
			c.TenantNamespace, c.HomeKubeconfig, c.Namespaces = "", "f", map[string]string{"x": "y", "y": "z"}
		}),
		"namespaces: x":                          with(func(c *Config) { c.Namespaces = map[string]string{"x": "Y"} }),
		"namespaces: x and y go to the same one": with(func(c *Config) { c.Services, c.Namespaces = true, map[string]string{"x": "z", "y": "z"} }),
		"capacity: is required":                  with(func(c *Config) { c.TenantNamespace, c.Namespaces = "", map[string]string{"x": "y"} }),
		"capacity cpu is -1, want":               with(func(c *Config) { c.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("-1")} }),
		"qps":                                    with(func(c *Config) { c.QPS = -1 }),
	} {
		if _, err := c.completeConfig(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want an error about %s", c, err, want)
		}
	}
	c, err := with(func(*Config) {}).completeConfig()
	if err != nil || c.QPS != DefaultQPS || c.Burst != DefaultBurst {
		t.Errorf("the smallest configuration is %+v (%v)", c, err)
	}
	if _, err := c.remoteAccess(); err == nil || !strings.Contains(err.Error(), "kubeconfig") {
		t.Errorf("without a kubeconfig: got %v", err)
	}
	if _, err := c.homeAccess(); err == nil || !strings.Contains(err.Error(), "homeKubeconfig") {
		t.Errorf("without an access to the home cluster: got %v", err)
	}
}

func TestAnnotationsAreNamed(t *testing.T) {
	c := Config{Annotations: []string{"note", "example.com/*"}}
	for key, want := range map[string]bool{"note": true, "notes": false, "example.com/a": true, "iam.example.com/role": false} {
		if got := c.showsAnnotation(key); got != want {
			t.Errorf("annotation %s: shown %t, want %t", key, got, want)
		}
	}
}
