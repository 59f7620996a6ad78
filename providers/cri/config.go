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
	// LocalVolumes are the directories that PersistentVolumes of the kind local may be in, beside hostPaths. By default
	// there are none, and pods that claim a PersistentVolume fail.
	LocalVolumes []string `json:"localVolumes,omitempty"`
	// ProvisionVolumes is the directory that the node makes PersistentVolumes in, for claims of StorageClasses with the
	// provisioner virtual-kubelet.io/local-path. The node then needs the rights of deploy/manifests/provisioner.yaml. Default: none.
	ProvisionVolumes string `json:"provisionVolumes,omitempty"`
	// CgroupParent is the cgroup that those of pods are made in, as a kubelet makes them: with it pods have limits as a whole, also of
	// processes. The runtime must have the cgroup driver cgroupfs. The default is the runtime's, and no such limits.
	CgroupParent string `json:"cgroupParent,omitempty"`
	// PodPidsLimit is how many processes and threads a pod may have; -1 is any number. It needs CgroupParent, and with that the default
	// is podruntime.DefaultPodPidsLimit.
	PodPidsLimit int64 `json:"podPidsLimit,omitempty"`
	// Privileged allows pods that have power over the machine: privileged containers, and the machine's
	// network, processes or IPC. Such pods fail by default.
	Privileged bool `json:"privileged,omitempty"`
	// AllowedUnsafeSysctls are sysctls that pods may set besides those that are safe, as a kubelet's: names, and beginnings of names
	// such as kernel.msg*. Default: none.
	AllowedUnsafeSysctls []string `json:"allowedUnsafeSysctls,omitempty"`
	// RuntimeHandlers are the names that the runtime has for the classes of RuntimeClass objects. Pods of
	// other classes fail.
	RuntimeHandlers map[string]string `json:"runtimeHandlers,omitempty"`
	// SystemReserved and KubeReserved are what of the machine pods do not get, because its own programs and this one need it, as a
	// kubelet's: cpu, memory, ephemeral-storage and pid. What the node offers to pods is the rest, without what EvictionHard keeps
	// available of memory and of the disk. Default: none.
	SystemReserved map[string]string `json:"systemReserved,omitempty"`
	KubeReserved   map[string]string `json:"kubeReserved,omitempty"`
	// EvictionHard is how much must be available of the machine at least; below that the node says so, takes no further pods, and
	// evicts one after the other. A kubelet's own are memory.available: 100Mi, nodefs.available: 10%, nodefs.inodesFree: 5%
	// and imagefs.available: 15%; pid.available is another one. Default: none, as the machine may be shared with other work.
	EvictionHard map[string]string `json:"evictionHard,omitempty"`
	// ImageGC says when images that nothing uses are removed. Default: as a kubelet does it, from a disk that is 85 % full on until
	// it is 80 % full.
	ImageGC podruntime.ImageGC `json:"imageGC,omitzero"`
	// Capacity is what the node offers, where that differs from what the machine has.
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// format is what a configuration file of this provider looks like.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_CRI"}

// some is a list of what is not empty.
func some(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path}
}

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
	for field, paths := range map[string][]string{"root": {c.Root}, "logRoot": {c.LogRoot}, "hostPaths": c.HostPaths, "localVolumes": c.LocalVolumes, "provisionVolumes": some(c.ProvisionVolumes)} {
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
