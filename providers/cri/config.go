// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"fmt"
	"net/netip"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// What a configuration file of this provider says about itself.
const (
	APIVersion = "cri.virtual-kubelet.io/v1alpha1"
	Kind       = "CRIProviderConfiguration"
)

// Defaults of directories.
const (
	DefaultRoot    = "/var/lib/virtual-kubelet/cri"
	DefaultLogRoot = "/var/log/pods"
)

// Config is the configuration of the provider. A field that is one value or a list can also be set by an environment variable,
// such as VKUBELET_CRI_LOG_ROOT.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Endpoint is where the container runtime listens: unix:// and the path of a socket. By
	// default it is that of containerd, CRI-O or cri-dockerd, whichever is there.
	Endpoint string `json:"endpoint,omitempty"`
	// Root is the directory for volumes and other files of pods. Only one node may use it. Default DefaultRoot.
	Root string `json:"root,omitempty"`
	// LogRoot is the directory of the logs of containers. Default DefaultLogRoot.
	LogRoot string `json:"logRoot,omitempty"`
	// ClusterDNS are the addresses of the cluster's DNS servers. Without any, pods use the machine's.
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// ClusterDomain is the domain of the cluster's DNS. The default is the setting --cluster-domain.
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// HostPaths are the directories of the machine that pods may mount, and all below them. By default
	// there are none, and pods with such volumes fail.
	HostPaths []string `json:"hostPaths,omitempty"`
	// CgroupParent is the cgroup that containers are made in. The default is the runtime's.
	CgroupParent string `json:"cgroupParent,omitempty"`
	// Privileged allows pods that have power over the machine: privileged containers, and the machine's
	// network, processes or IPC. Such pods fail by default.
	Privileged bool `json:"privileged,omitempty"`
	// RuntimeHandlers are the names that the runtime has for the classes of RuntimeClass objects. Pods of
	// other classes fail.
	RuntimeHandlers map[string]string `json:"runtimeHandlers,omitempty"`
	// Capacity is what the node offers, where that differs from what the machine has.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// format is what a configuration file of this provider looks like.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_CRI"}

// LoadConfig returns what the file at path says, and the environment above it. An empty path is no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// complete fills the defaults of c and refuses what cannot be.
func (c Config) complete() (Config, error) {
	if c.Root == "" {
		c.Root = DefaultRoot
	}
	if c.LogRoot == "" {
		c.LogRoot = DefaultLogRoot
	}
	for field, paths := range map[string][]string{"root": {c.Root}, "logRoot": {c.LogRoot}, "hostPaths": c.HostPaths} {
		for _, path := range paths {
			if !filepath.IsAbs(path) || filepath.Clean(path) != path {
				return c, fmt.Errorf("cri provider: %s: %q: want an absolute path in its shortest form", field, path)
			}
		}
	}
	for _, server := range c.ClusterDNS {
		if _, err := netip.ParseAddr(server); err != nil {
			return c, fmt.Errorf("cri provider: clusterDNS: %q: want an IP address", server)
		}
	}
	for name, quantity := range c.Capacity {
		if quantity.Sign() < 0 {
			return c, fmt.Errorf("cri provider: capacity %s is %s, want 0 or more", name, quantity.String())
		}
	}
	return c, nil
}
