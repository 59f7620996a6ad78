// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
)

// The apiVersion and kind of a configuration file of this provider.
const (
	APIVersion = "process.virtual-kubelet.io/v1alpha1"
	Kind       = "ProcessProviderConfiguration"
)

// Values of Config.Isolation.
const (
	// IsolationGVisor runs every pod on a kernel of its own, with gVisor's runsc. It is the default.
	IsolationGVisor = "gvisor"
	// IsolationRunc runs containers with the runc of the machine, on the machine's kernel.
	IsolationRunc = "runc"
	// IsolationCrun does the same with crun.
	IsolationCrun = "crun"
	// IsolationNone runs programs of the machine as plain processes, without images.
	IsolationNone = "none"
)

// PodNetworkHost is the value of Config.PodNetwork that leaves every pod in the host network.
const PodNetworkHost = "host"

// Config is the configuration of the provider. An environment variable, such as VKUBELET_PROCESS_STATE_DIR, can
// also set a field with one value or a list.
type Config struct {
	// APIVersion must be the constant APIVersion in a file.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind must be the constant Kind in a file.
	Kind string `json:"kind,omitempty"`
	// StateDir contains images, containers, logs and volumes. Default: /var/lib/virtual-kubelet/process/NODE, or
	// without root ~/.local/state/virtual-kubelet/process/NODE.
	StateDir string `json:"stateDir,omitempty"`
	// Images are directories with images, which are used before any registry: OCI layouts, and archives as docker
	// save writes them.
	Images []string `json:"images,omitempty"`
	// InsecureRegistries are registries without TLS, as host:port. TLS is required for all others, also on
	// localhost.
	InsecureRegistries []string `json:"insecureRegistries,omitempty"`
	// RegistryMirrors are the URLs of mirrors by registry, such as docker.io or host:port. A mirror gets no
	// credentials. Images that the mirror lacks are pulled from the registry.
	RegistryMirrors map[string]string `json:"registryMirrors,omitempty"`
	// Isolation is the container runtime: gvisor, runc or crun; or none. Default gvisor. If the runtime does not
	// work, the start fails; there is no fallback to another runtime.
	Isolation string `json:"isolation,omitempty"`
	// RuntimePath is the path of the runtime's program. Default: the program of that name on PATH; for gvisor,
	// runsc in the directory of this program, then on PATH.
	RuntimePath string `json:"runtimePath,omitempty"`
	// RequirePatchedRuntime refuses to start with an unknown runtime, or with one that has known unfixed
	// vulnerabilities. Default: such a runtime is used, and the log, the node and doctor list the
	// vulnerabilities.
	RequirePatchedRuntime bool `json:"requirePatchedRuntime,omitempty"`
	// Privileged allows privileged containers, and containers in the host's namespaces. gVisor allows none.
	Privileged bool `json:"privileged,omitempty"`
	// IgnoreSeccomp runs pods with the seccomp profile RuntimeDefault without that profile if Isolation is none,
	// which cannot filter system calls. It is for namespaces of the restricted pod security standard, which admit
	// only pods with a profile. Default: such pods are refused.
	IgnoreSeccomp bool `json:"ignoreSeccomp,omitempty"`
	// HostPaths are the directories for volumes of the kind hostPath. Default: none.
	HostPaths []string `json:"hostPaths,omitempty"`
	// LocalVolumes are the directories for PersistentVolumes of the kind local, in addition to hostPaths.
	// Default: none.
	LocalVolumes []string `json:"localVolumes,omitempty"`
	// ProvisionVolumes is the directory in which the node makes PersistentVolumes, for claims of StorageClasses
	// with the provisioner virtual-kubelet.io/local-path. The node then needs the rights of
	// deploy/manifests/provisioner.yaml. Default: none.
	ProvisionVolumes string `json:"provisionVolumes,omitempty"`
	// PodNetwork is the network of pods. Default: each pod has a network and an address of its own, without root,
	// and cannot reach the machine; with isolation none, every pod is in the host network. The path of a CNI
	// network puts pods into that network, and needs root. PodNetworkHost leaves every pod in the host network.
	PodNetwork string `json:"podNetwork,omitempty"`
	// PodCIDR is the range of pod addresses in the default network. It must not overlap a network of the machine.
	// Default: 1,021 addresses in 10.88.0.0/13 or 172.24.0.0/13 that the machine does not use, chosen by a hash
	// of the node name.
	PodCIDR string `json:"podCIDR,omitempty"`
	// PodNetworkDenied are prefixes that pods cannot reach in the default network. The addresses of the machine,
	// link-local addresses and metadata services are always denied. With 0.0.0.0/0, pods reach only each other,
	// DNS and services. Default: none.
	PodNetworkDenied []string `json:"podNetworkDenied,omitempty"`
	// NetworkProgram is the runsc that runs the network process, for the default network with isolation runc or
	// crun. Default: runsc in the directory of this program, then on PATH. Without runsc, pods are in the host
	// network.
	NetworkProgram string `json:"networkProgram,omitempty"`
	// CNIPlugins are the directories of the CNI plugins. Default: /opt/cni/bin and /usr/lib/cni.
	CNIPlugins []string `json:"cniPlugins,omitempty"`
	// AllowedUnsafeSysctls are the sysctls that pods may set in addition to the safe ones, as in a kubelet:
	// names, and prefixes such as kernel.msg*. Network sysctls need a podNetwork. Default: none.
	AllowedUnsafeSysctls []string `json:"allowedUnsafeSysctls,omitempty"`
	// CgroupParent is the parent of the pods' cgroups, such as /virtual-kubelet. Default: the daemon's cgroup.
	CgroupParent string `json:"cgroupParent,omitempty"`
	// PodPidsLimit is the limit of processes and threads of a pod; -1 means no limit. Default:
	// podruntime.DefaultPodPidsLimit, where the daemon may make cgroups.
	PodPidsLimit int64 `json:"podPidsLimit,omitempty"`
	// SystemReserved and KubeReserved are the resources reserved for other programs of the machine and for this
	// daemon, as in a kubelet: cpu, memory, ephemeral-storage and pid. Allocatable is the capacity minus both,
	// and minus the memory and disk in EvictionHard. Default: none.
	SystemReserved map[string]string `json:"systemReserved,omitempty"`
	KubeReserved   map[string]string `json:"kubeReserved,omitempty"`
	// EvictionHard has the eviction thresholds: the amounts of the machine's resources that must stay available.
	// Below a threshold the node sets a pressure condition, refuses new pods, and evicts pods one by one.
	// Default: a kubelet's memory.available: 100Mi, nodefs.available: 10%, nodefs.inodesFree: 5%,
	// imagefs.available: 15% and imagefs.inodesFree: 5%, but at most 5 GiB and 250,000 inodes, and at most half
	// of the amount available at the start, because other programs may share the machine. pid.available can be
	// set, too. A configured map replaces all defaults, and {} disables eviction.
	EvictionHard map[string]string `json:"evictionHard,omitempty"`
	// ImageGC configures the removal of unused images. Default: as in a kubelet, when the disk is 85 % full,
	// down to 80 %.
	ImageGC podruntime.ImageGC `json:"imageGC,omitzero"`
	// ClusterDNS are the addresses of the cluster's DNS servers. Default: the DNS servers of the machine.
	ClusterDNS []string `json:"clusterDNS,omitempty"`
}

// format describes the configuration files of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_PROCESS"}

// LoadConfig reads the file at path, and overrides it by the environment. An empty path means no file.
func LoadConfig(path string) (Config, error) { return format.Load(path) }

// completeConfig sets the defaults of c and refuses invalid values.
func (c Config) completeConfig(nodeName string) (Config, error) {
	switch c.Isolation {
	case "":
		c.Isolation = IsolationGVisor
	case IsolationGVisor, IsolationRunc, IsolationCrun, IsolationNone:
	default:
		return c, fmt.Errorf("process provider: isolation %q: want %s, %s, %s or %s", c.Isolation, IsolationGVisor, IsolationRunc, IsolationCrun, IsolationNone)
	}
	if c.RuntimePath != "" && !c.hasRuntime() {
		return c, fmt.Errorf("process provider: runtimePath: isolation %s has no runtime; want %s, %s or %s", c.Isolation, IsolationGVisor, IsolationRunc, IsolationCrun)
	}
	if c.RequirePatchedRuntime && !c.hasRuntime() {
		return c, fmt.Errorf("process provider: requirePatchedRuntime: isolation %s has no runtime", c.Isolation)
	}
	if err := c.checkNetwork(); err != nil {
		return c, fmt.Errorf("process provider: %w", err)
	}
	if c.StateDir == "" {
		dir, err := defaultStateDir()
		if err != nil {
			return c, err
		}
		c.StateDir = filepath.Join(dir, nodeName)
	}
	var err error
	if c.StateDir, err = filepath.Abs(c.StateDir); err != nil {
		return c, fmt.Errorf("process provider: stateDir: %w", err)
	}
	if strings.ContainsAny(c.StateDir, ",:\\") {
		return c, fmt.Errorf("process provider: stateDir %q: the kernel's options for mounts have no place for a comma, colon or backslash", c.StateDir)
	}
	if p := c.CgroupParent; p != "" && (!filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/") {
		return c, fmt.Errorf("process provider: cgroupParent %q: want the path of a cgroup in its shortest form, such as /virtual-kubelet", p)
	}
	if c.ProvisionVolumes != "" && !filepath.IsAbs(c.ProvisionVolumes) {
		return c, fmt.Errorf("process provider: provisionVolumes: %q: want an absolute path", c.ProvisionVolumes)
	}
	for registry, mirror := range c.RegistryMirrors {
		if err := images.CheckMirror(mirror); err != nil {
			return c, fmt.Errorf("process provider: registryMirrors: %s: %w", registry, err)
		}
	}
	for _, dir := range c.Images {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return c, errors.Join(fmt.Errorf("process provider: images: want a directory with images at %q", dir), err)
		}
	}
	return c, nil
}

// checkNetwork refuses network settings that would have no effect: an administrator must be able to rely on
// PodNetworkDenied.
func (c Config) checkNetwork() error {
	for _, text := range c.PodNetworkDenied {
		if _, err := netip.ParsePrefix(text); err != nil {
			return fmt.Errorf("podNetworkDenied: %q: want prefixes such as 10.0.0.0/8: %w", text, err)
		}
	}
	if c.hasRuntime() && c.PodNetwork == "" {
		return nil
	}
	for name, set := range map[string]bool{"podCIDR": c.PodCIDR != "", "podNetworkDenied": len(c.PodNetworkDenied) > 0} {
		if set {
			return fmt.Errorf("%s: it is for the default network of pods, which they do not have with isolation %s and podNetwork %q", name, c.Isolation, c.PodNetwork)
		}
	}
	return nil
}

// hasRuntime reports whether a container runtime runs the containers.
func (c Config) hasRuntime() bool { return c.Isolation != IsolationNone }

func defaultStateDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/virtual-kubelet/process", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "virtual-kubelet", "process"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("process provider: set stateDir: %w", err)
	}
	return filepath.Join(home, ".local", "state", "virtual-kubelet", "process"), nil
}
