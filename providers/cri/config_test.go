// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func load(t *testing.T, content string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cri.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(path)
	if err != nil {
		return c, err
	}
	return c.completeConfig()
}

const header = "apiVersion: cri.virtual-kubelet.io/v1alpha1\nkind: CRIProviderConfiguration\n"

func TestConfigOfAFile(t *testing.T) {
	c, err := load(t, header+"endpoint: unix:///run/crio/crio.sock\nhostPaths: [/data]\ncapacity: {cpu: 2}\nclusterDNS: [10.96.0.10]\n"+
		"imageGC: {highThresholdPercent: 90, minimumAge: 5m}\nevictionHard: {memory.available: 100Mi}\n")
	if err != nil {
		t.Fatal(err)
	}
	cpu := c.Capacity[corev1.ResourceCPU]
	if c.Root != DefaultRoot || c.LogRoot != DefaultLogRoot || c.Endpoint != "unix:///run/crio/crio.sock" || cpu.Value() != 2 {
		t.Errorf("got %+v", c)
	}
	if c.EvictionHard["memory.available"] != "100Mi" {
		t.Errorf("got %v", c.EvictionHard)
	}
	if g := c.ImageGC; g.HighThresholdPercent != 90 || g.MinimumAge.Duration != 5*time.Minute {
		t.Errorf("got %+v", g)
	}
}

func TestConfigOfTheEnvironment(t *testing.T) {
	t.Setenv("VKUBELET_CRI_LOG_ROOT", "/logs")
	t.Setenv("VKUBELET_CRI_CLUSTER_DNS", "10.96.0.10,10.96.0.11")
	t.Setenv("VKUBELET_CRI_IMAGE_GC_HIGH_THRESHOLD_PERCENT", "95")
	c, err := load(t, header+"logRoot: /var/log\nroot: /r\n")
	if err != nil || c.LogRoot != "/logs" || len(c.ClusterDNS) != 2 || c.Root != "/r" || c.ImageGC.HighThresholdPercent != 95 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestConfigThatCannotBe(t *testing.T) {
	for content, want := range map[string]string{
		"endpoint: unix:///x":              "apiVersion",
		header + "endpont: unix:///x":      "endpoint",
		header + "root: relative":          "root",
		header + "logRoot: /a/../b":        "logRoot",
		header + "hostPaths: [a]":          "hostPaths",
		header + "clusterDNS: [localhost]": "clusterDNS",
		header + "capacity: {cpu: -1}":     "capacity",
		header + "cgroupParent: pods":      "cgroupParent",
	} {
		if _, err := load(t, content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error about %s", content, err, want)
		}
	}
}
