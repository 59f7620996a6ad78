// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"strings"
	"testing"

	nomadapi "github.com/hashicorp/nomad/api"
)

func TestConfigRefusesWhatCannotBe(t *testing.T) {
	for want, c := range map[string]Config{
		"clusterName":             {},
		"address: want an URL":    {ClusterName: "c", Address: "ftp://nomad:4646"},
		"tls: the address begins": {ClusterName: "c", TLS: TLS{ServerName: "x"}},
		"keyFile are only useful": {ClusterName: "c", Address: "https://x", TLS: TLS{CertFile: "config_test.go"}},
		"no such file":            {ClusterName: "c", Address: "https://x", TLS: TLS{CAFile: "absent"}},
		`drivers: "java"`:         {ClusterName: "c", Drivers: []string{"java"}},
		`network: "cni"`:          {ClusterName: "c", Network: "cni"},
		"priority: 101":           {ClusterName: "c", Priority: 101},
		"maxPods: -1":             {ClusterName: "c", MaxPods: -1},
	} {
		if _, err := c.complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	if _, err := (Config{ClusterName: "c"}).complete(); err != nil {
		t.Errorf("a configuration with the cluster alone: %v", err)
	}
}

// Source: github.com/virtual-kubelet/nomad, README.md ("Usage").
func TestPublishedD10AddressWithoutScheme(t *testing.T) {
	t.Setenv("NOMAD_ADDR", "127.0.0.1:4646")
	t.Setenv("NOMAD_REGION", "global")
	c, err := LoadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.complete(); err == nil || strings.Contains(err.Error(), "address") || !strings.Contains(err.Error(), "or in VKUBELET_NOMAD_CLUSTER_NAME") {
		t.Errorf("got %v, want the one setting that is new", err)
	}
	t.Setenv("VKUBELET_NOMAD_CLUSTER_NAME", "home-1")
	if c, err = LoadConfig(""); err == nil {
		c, err = c.complete()
	}
	if err != nil || c.Address != "http://127.0.0.1:4646" || c.Region != "global" {
		t.Errorf("got %q in %q, %v", c.Address, c.Region, err)
	}
	c.Address, c.TLS = "nomad.example:4646", TLS{ServerName: "server.global.nomad"}
	if c, err = c.complete(); err != nil || c.Address != "https://nomad.example:4646" {
		t.Errorf("with TLS: got %q, %v", c.Address, err)
	}
}

// TestCapacity counts only clients that are ready, eligible, and in the datacenters and the node pool of the
// node.
func TestCapacity(t *testing.T) {
	client := func(change func(*nomadapi.NodeListStub)) *nomadapi.NodeListStub {
		n := &nomadapi.NodeListStub{ID: "n", Datacenter: "dc1", NodePool: "default", Status: "ready", SchedulingEligibility: "eligible",
			NodeResources:     &nomadapi.NodeResources{Cpu: nomadapi.NodeCpuResources{CpuShares: 8000, TotalCpuCores: 4}, Memory: nomadapi.NodeMemoryResources{MemoryMB: 1024}, Disk: nomadapi.NodeDiskResources{DiskMB: 5000}},
			ReservedResources: &nomadapi.NodeReservedResources{Cpu: nomadapi.NodeReservedCpuResources{CpuShares: 1000}, Memory: nomadapi.NodeReservedMemoryResources{MemoryMB: 24}, Disk: nomadapi.NodeReservedDiskResources{DiskMB: 1000}},
		}
		change(n)
		return n
	}
	c := testConfig(t, func(c *Config) { c.Datacenters = []string{"dc*"} })
	got := placeOf([]*nomadapi.NodeListStub{
		client(func(*nomadapi.NodeListStub) {}),
		client(func(n *nomadapi.NodeListStub) { n.Status = "down" }),
		client(func(n *nomadapi.NodeListStub) { n.SchedulingEligibility = "ineligible" }),
		client(func(n *nomadapi.NodeListStub) { n.Datacenter = "other" }),
		client(func(n *nomadapi.NodeListStub) { n.NodePool = "gpu" }),
		client(func(n *nomadapi.NodeListStub) {
			n.NodeResources.Devices = []*nomadapi.NodeDeviceResource{{Vendor: "nvidia", Type: "gpu", Name: "A", Instances: []*nomadapi.NodeDevice{{}, {}}}}
		}),
	}, c)
	list := got.capacity(c)
	gpus := list["nvidia.com/gpu"]
	if got.mhz != 2000 || list.Cpu().String() != "7" || list.Memory().Value() != 2000<<20 || list.StorageEphemeral().Value() != 8000<<20 || gpus.Value() != 2 {
		t.Errorf("got %v MHz and %v, want 2000 and 7 CPUs, 2000 MiB, 8000 MiB of disk, 2 GPUs", got.mhz, list)
	}
	if err := placeOf(nil, c).unready(c); err == nil {
		t.Error("a place without clients is ready")
	}
}
