// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/cli/configfile"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// The version and the kind of a configuration file of this provider.
const (
	APIVersion = "mock.virtual-kubelet.io/v1alpha1"
	Kind       = "MockProviderConfiguration"
)

// DefaultPodCIDR is where pods get their addresses from.
const DefaultPodCIDR = "10.88.0.0/16"

// Config is the configuration of the provider. Environment variables such as VKUBELET_MOCK_DEFAULTS_RUN_FOR can
// also set fields with one value.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Capacity is the capacity of the node, in any resources. Missing cpu, memory, ephemeral-storage and pods
	// get the defaults of DefaultConfig.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// ProviderID is the node's spec.providerID. Default "".
	ProviderID string `json:"providerID,omitempty"`
	// PodCIDR is the network for the addresses of pods; each pod gets one. The addresses are never used. Default
	// DefaultPodCIDR.
	PodCIDR string `json:"podCIDR,omitempty"`
	// Defaults is the behavior of pods without annotations.
	Defaults Behavior `json:"defaults,omitempty"`
}

// DefaultConfig returns the configuration for running without a file: a node of 1000 CPUs, 4 TiB of memory, 100
// TiB of ephemeral storage and 5000 pods.
func DefaultConfig() Config {
	return Config{PodCIDR: DefaultPodCIDR, Capacity: corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("1000"),
		corev1.ResourceMemory:           resource.MustParse("4Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Ti"),
		corev1.ResourcePods:             resource.MustParse("5000"),
	}}
}

// LoadConfig reads the configuration file at path for the node called nodeName; environment variables override
// it. If path is empty, LoadConfig returns DefaultConfig. A file may also have the older format: a JSON object
// with an entry for each node.
func LoadConfig(path, nodeName string) (Config, error) {
	return config.Format[Config]{
		APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_MOCK", Default: DefaultConfig,
		Unversioned: func(name string, data []byte) (Config, error) { return loadNodeFile(name, data, nodeName) },
	}.Load(path)
}

// withDefaults fills the defaults of c and refuses invalid configurations.
func (c Config) withDefaults() (Config, netip.Prefix, error) {
	defaults := DefaultConfig()
	if c.PodCIDR == "" {
		c.PodCIDR = defaults.PodCIDR
	}
	capacity := defaults.Capacity
	for name, quantity := range c.Capacity {
		if quantity.Sign() < 0 {
			return c, netip.Prefix{}, fmt.Errorf("mock provider: capacity %s is %s, want 0 or more", name, quantity.String())
		}
		capacity[name] = quantity
	}
	c.Capacity = capacity
	if err := c.Defaults.checkValues(); err != nil {
		return c, netip.Prefix{}, fmt.Errorf("mock provider: defaults: %w", err)
	}
	prefix, err := netip.ParsePrefix(c.PodCIDR)
	if err != nil {
		return c, netip.Prefix{}, fmt.Errorf("mock provider: podCIDR %q: want a network such as %s", c.PodCIDR, DefaultPodCIDR)
	}
	return c, prefix.Masked(), nil
}

// nodeEntry is the entry of one node in a file of the older format.
type nodeEntry struct {
	CPU        resource.Quantity            `json:"cpu"`
	Memory     resource.Quantity            `json:"memory"`
	Pods       resource.Quantity            `json:"pods"`
	Others     map[string]resource.Quantity `json:"others"`
	ProviderID string                       `json:"providerID"`
}

// loadNodeFile reads a file of the older format, with its defaults.
func loadNodeFile(path string, data []byte, nodeName string) (Config, error) {
	var nodes map[string]*nodeEntry
	if err := configfile.Decode(path, data, &nodes); err != nil {
		return Config{}, err
	}
	entry := nodes[nodeName]
	if entry == nil {
		names := []string{}
		for name := range nodes {
			names = append(names, name)
		}
		slices.Sort(names)
		return Config{}, fmt.Errorf("%s: no entry for node %q, only for: %s", path, nodeName, strings.Join(names, ", "))
	}
	c := Config{ProviderID: entry.ProviderID, PodCIDR: DefaultPodCIDR, Capacity: corev1.ResourceList{}}
	for name, quantity := range entry.Others {
		c.Capacity[corev1.ResourceName(name)] = quantity
	}
	c.Capacity[corev1.ResourceCPU] = orDefault(entry.CPU, "20")
	c.Capacity[corev1.ResourceMemory] = orDefault(entry.Memory, "100Gi")
	c.Capacity[corev1.ResourcePods] = orDefault(entry.Pods, "20")
	c.Capacity[corev1.ResourceEphemeralStorage] = orDefault(entry.Others[string(corev1.ResourceEphemeralStorage)], "1Ti")
	return c, nil
}

func orDefault(q resource.Quantity, fallback string) resource.Quantity {
	if q.IsZero() {
		return resource.MustParse(fallback)
	}
	return q
}
