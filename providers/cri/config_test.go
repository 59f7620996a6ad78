// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	return c.complete()
}

const header = "apiVersion: cri.virtual-kubelet.io/v1alpha1\nkind: CRIProviderConfiguration\n"

func TestConfigOfAFile(t *testing.T) {
	c, err := load(t, header+"endpoint: unix:///run/crio/crio.sock\nhostPaths: [/data]\ncapacity: {cpu: 2}\nclusterDNS: [10.96.0.10]\n")
	if err != nil {
		t.Fatal(err)
	}
	cpu := c.Capacity[corev1.ResourceCPU]
	if c.Root != DefaultRoot || c.LogRoot != DefaultLogRoot || c.Endpoint != "unix:///run/crio/crio.sock" || cpu.Value() != 2 {
		t.Errorf("got %+v", c)
	}
}

func TestConfigOfTheEnvironment(t *testing.T) {
	t.Setenv("VKUBELET_CRI_LOG_ROOT", "/logs")
	t.Setenv("VKUBELET_CRI_CLUSTER_DNS", "10.96.0.10,10.96.0.11")
	c, err := load(t, header+"logRoot: /var/log\nroot: /r\n")
	if err != nil || c.LogRoot != "/logs" || len(c.ClusterDNS) != 2 || c.Root != "/r" {
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
	} {
		if _, err := load(t, content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error about %s", content, err, want)
		}
	}
}

func TestCapacityOfTheConfiguration(t *testing.T) {
	p := &provider{capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}
	n := &corev1.Node{Status: corev1.NodeStatus{Capacity: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourcePods: resource.MustParse("110"),
	}}}
	p.configured(n)
	if n.Status.Capacity.Cpu().Value() != 3 || n.Status.Allocatable.Cpu().Value() != 3 || n.Status.Capacity.Pods().Value() != 110 {
		t.Errorf("got %v, allocatable %v", n.Status.Capacity, n.Status.Allocatable)
	}
}
