// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"fmt"
	"net/netip"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// The apiVersion and kind of a configuration file of this provider.
const (
	APIVersion = "cri.virtual-kubelet.io/v1alpha1"
	Kind       = "CRIProviderConfiguration"
)

// Default directories.
const (
	DefaultRoot    = "/var/lib/virtual-kubelet/cri"
	DefaultLogRoot = "/var/log/pods"
)

// Config is the configuration of the provider. An environment variable, such as VKUBELET_CRI_LOG_ROOT, can also
// set a field with one value or a list.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// Endpoint is the address of the container runtime, in the form unix:///path. Default: the first existing
	// socket of containerd, CRI-O and cri-dockerd.
	Endpoint string `json:"endpoint,omitempty"`
	// Root is the directory for volumes and other files of pods. Only one node may use it. Default DefaultRoot.
	Root string `json:"root,omitempty"`
	// LogRoot is the directory of the logs of containers. Default DefaultLogRoot.
	LogRoot string `json:"logRoot,omitempty"`
	// ClusterDNS are the addresses of the cluster's DNS servers. Default: the DNS servers of the machine.
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// ClusterDomain is the domain of the cluster's DNS. The default is the setting --cluster-domain.
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// HostPaths are the directories that pods may mount as hostPath volumes, with everything below them. Default:
	// none, and pods with such volumes fail.
	HostPaths []string `json:"hostPaths,omitempty"`
	// LocalVolumes are the directories for PersistentVolumes of the kind local, in addition to hostPaths.
	// Default: none, and pods with a claim of a PersistentVolume fail.
	LocalVolumes []string `json:"localVolumes,omitempty"`
	// ProvisionVolumes is the directory in which the node creates PersistentVolumes, for claims of StorageClasses
	// with the provisioner virtual-kubelet.io/local-path. The node then needs the permissions in
	// deploy/manifests/provisioner.yaml. Default: none.
	ProvisionVolumes string `json:"provisionVolumes,omitempty"`
	// CgroupParent is the parent of the pods' cgroups, as in a kubelet. It enables limits for the whole pod,
	// including process limits. The runtime must use the cgroup driver cgroupfs. Default: the runtime chooses,
	// and there are no such limits.
	CgroupParent string `json:"cgroupParent,omitempty"`
	// PodPidsLimit is the limit of processes and threads of a pod; -1 means no limit. It needs CgroupParent.
	// Default with CgroupParent: podruntime.DefaultPodPidsLimit.
	PodPidsLimit int64 `json:"podPidsLimit,omitempty"`
	// Privileged allows privileged containers, and the network, PID and IPC namespaces of the host. By default
	// such pods fail.
	Privileged bool `json:"privileged,omitempty"`
	// AllowedUnsafeSysctls are the sysctls that pods may set in addition to the safe ones, as in a kubelet:
	// names, and prefixes such as kernel.msg*. Default: none.
	AllowedUnsafeSysctls []string `json:"allowedUnsafeSysctls,omitempty"`
	// RuntimeHandlers maps RuntimeClasses to handlers of the runtime. Pods of other classes fail.
	RuntimeHandlers map[string]string `json:"runtimeHandlers,omitempty"`
	// SystemReserved and KubeReserved are the resources reserved for other programs of the machine and for this
	// daemon, as in a kubelet: cpu, memory, ephemeral-storage and pid. Allocatable is the capacity minus both,
	// and minus the memory and disk in EvictionHard. Default: none.
	SystemReserved map[string]string `json:"systemReserved,omitempty"`
	KubeReserved   map[string]string `json:"kubeReserved,omitempty"`
	// EvictionHard has the eviction thresholds. Below a threshold the node sets a pressure condition, refuses new
	// pods, and evicts pods one by one. A kubelet's defaults are memory.available: 100Mi, nodefs.available: 10%,
	// nodefs.inodesFree: 5% and imagefs.available: 15%. pid.available can be set, too. Default: none, because
	// other programs may share the machine.
	EvictionHard map[string]string `json:"evictionHard,omitempty"`
	// ImageGC configures the removal of unused images. Default: as in a kubelet, when the disk is 85 % full,
	// down to 80 %.
	ImageGC podruntime.ImageGC `json:"imageGC,omitzero"`
	// Capacity has the resources in which the capacity of the node differs from the machine's.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// format describes the configuration files of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_CRI"}

// listOf returns a list with path, or nil if path is empty.
func listOf(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path}
}

// LoadConfig reads the file at path, and overrides it by the environment. An empty path means no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// completeConfig sets the defaults of c and refuses invalid values.
func (c Config) completeConfig() (Config, error) {
	if c.Root == "" {
		c.Root = DefaultRoot
	}
	if c.LogRoot == "" {
		c.LogRoot = DefaultLogRoot
	}
	for field, paths := range map[string][]string{"root": {c.Root}, "logRoot": {c.LogRoot}, "hostPaths": c.HostPaths, "localVolumes": c.LocalVolumes, "provisionVolumes": listOf(c.ProvisionVolumes)} {
		for _, path := range paths {
			if !filepath.IsAbs(path) || filepath.Clean(path) != path {
				return c, fmt.Errorf("cri provider: %s: %q: want an absolute path in its shortest form", field, path)
			}
		}
	}
	if p := c.CgroupParent; p != "" && (!filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/") {
		return c, fmt.Errorf("cri provider: cgroupParent: %q: want the path of a cgroup in its shortest form, such as /pods", p)
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
