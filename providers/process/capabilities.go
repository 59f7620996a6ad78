// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"os"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

// mounted lists the features that need mounts, which isolation none does not have.
var mounted = []capability.Feature{
	capability.EmptyDir, capability.MemoryEmptyDir, capability.ImageVolumes, capability.ObjectVolumes, capability.TokenVolumes, capability.CertificateFiles,
	capability.HostPath, capability.PersistentVolume,
	capability.SubPath, capability.MountPropagation, capability.EnvFiles, capability.TerminationMessages, capability.HostAliases,
	capability.DNS, capability.Hostname, capability.ReadOnlyRoot, capability.UnmaskedProc, capability.Sysctls,
}

// Capabilities returns the features of this configuration for a daemon that runs as root and can create cgroups.
// The notes name the features that other daemons lack; a running provider declares its actual features.
func (c Config) Capabilities() capability.Declaration {
	isolation := cmp.Or(c.Isolation, IsolationGVisor)
	own := isolation != IsolationNone && c.PodNetwork != PodNetworkHost
	lacks, notes := declareFeatures(surroundings{isolation: isolation, root: true, network: own, hostPorts: own, user: c.PodNetwork == "", ignoreSeccomp: c.IgnoreSeccomp})
	switch isolation {
	case IsolationGVisor:
		notes[capability.ContainerLimits] += "; where the daemon may make cgroups"
		notes[capability.FSGroup] = needsRoot
	case IsolationNone:
		notes[capability.ContainerLimits] = "where the daemon may make cgroups; else they are not kept"
		notes[capability.InPlaceResize] = "where the daemon may make cgroups"
		notes[capability.RunAsUser] = "other users than the daemon's need the rights of root"
	default: // runc and crun need root for mounts and cgroups
	}
	return podruntime.Capabilities(podruntime.Config{HostPaths: c.HostPaths, LocalVolumes: c.LocalVolumes, ProvisionVolumes: c.ProvisionVolumes, Privileged: c.Privileged, Lacks: lacks, Notes: notes})
}

const needsRoot = "the daemon must have the rights of root"

// surroundings are the properties of the machine and the configuration that decide which features pods have.
type surroundings struct {
	// isolation is the configured isolation.
	isolation string
	// root is true if the daemon runs as root.
	root bool
	// noLimits is the reason why resource limits are not enforced, or nil.
	noLimits error
	// selinux is true if the kernel enforces labels.
	selinux bool
	// network is true if pods have their own network, and hostPorts if that network supports host ports.
	network, hostPorts bool
	// user is true if that network is the default network.
	user bool
	// ignoreSeccomp is Config.IgnoreSeccomp.
	ignoreSeccomp bool
}

// declareFeatures returns the missing features with reasons, and notes about the others.
func declareFeatures(in surroundings) (lacks, notes map[capability.Feature]string) {
	lacks = map[capability.Feature]string{
		capability.SharedProcesses: "the containers of a pod do not see each other's processes with the process provider",
		capability.AppArmor:        "the process provider sets no AppArmor profiles",
		capability.RuntimeClass:    "the process provider has no runtime handlers",
	}
	notes = map[capability.Feature]string{
		capability.SELinux: "without effect, as everywhere where the kernel has no SELinux; refused where it has",
		capability.Seccomp: "RuntimeDefault is the profile of Docker and others; profiles of type Localhost are refused",
	}
	if in.selinux {
		lacks[capability.SELinux] = "the process provider sets no SELinux labels"
	}
	if !in.root {
		lacks[capability.FSGroup] = "a daemon without the rights of root cannot give files to a group"
	}
	in.addPorts(lacks, notes)
	switch in.isolation {
	case IsolationGVisor:
		in.addGuests(lacks, notes)
	case IsolationNone:
		in.addPrograms(lacks, notes)
	}
	if in.noLimits != nil {
		why := "limits are not kept: " + in.noLimits.Error()
		lacks[capability.InPlaceResize], notes[capability.ContainerLimits] = why, why
	}
	return lacks, notes
}

// addPrograms adds the features that pods lack with isolation none.
func (in surroundings) addPrograms(lacks, notes map[capability.Feature]string) {
	for _, f := range mounted {
		lacks[f] = "with isolation none containers have no mounts"
	}
	lacks[capability.FSGroup] = "without isolation there are no volumes"
	lacks[capability.Privileged] = "privileged containers need the isolation runc or crun, and here it is none"
	if in.ignoreSeccomp {
		notes[capability.Seccomp] = "without effect (ignoreSeccomp): nothing filters system calls of programs of the machine; profiles of type Localhost are refused"
		return
	}
	delete(notes, capability.Seccomp)
	lacks[capability.Seccomp] = "nothing filters system calls of programs of the machine; see ignoreSeccomp in its configuration"
}

// addGuests adds the features that pods lack with gVisor.
func (in surroundings) addGuests(lacks, notes map[capability.Feature]string) {
	lacks[capability.Privileged] = "a sandbox of gVisor has no power over the machine: a privileged container would have less than it asks for"
	lacks[capability.HostNamespaces] = "a sandbox of gVisor does not share processes or memory with the machine"
	lacks[capability.MountPropagation] = "mounts are not passed on between a sandbox of gVisor and the machine"
	lacks[capability.Sysctls] = "the kernel of gVisor has its own settings"
	notes[capability.ContainerLimits] = "of the pod as a whole, where each of its containers has them, with 64Mi and 250m more for its sandbox; gVisor has none of a container"
	notes[capability.InPlaceResize] = "of the pod as a whole, as its limits"
	if in.root {
		notes[capability.MemoryEmptyDir] = "empty again when the sandbox of the pod ends, as for lack of memory; not where a container mounts a part of it"
	}
	notes[capability.UnmaskedProc] = "without effect: what /proc tells is the kernel of gVisor's"
	notes[capability.Seccomp] = "RuntimeDefault is the profile of Docker and others, kept by the kernel of gVisor; profiles of type Localhost are refused"
	if !in.network {
		notes[capability.HostNetwork] = "every pod is in the network of the machine (podNetwork: host)"
	}
}

// addPorts adds the restrictions on host ports.
func (in surroundings) addPorts(lacks, notes map[capability.Feature]string) {
	const machine = "every pod is in the network of the machine"
	switch {
	case !in.network:
		notes[capability.HostPorts] = machine + ": a port is its own host port"
		notes[capability.Sysctls] = "but those of the network: " + machine
		lacks[capability.HostPortMapping] = machine + ", where a port has one number; podNetwork gives pods a network of their own"
	case !in.hostPorts:
		why := "the network of pods (podNetwork) has no plugin for host ports, such as portmap"
		lacks[capability.HostPorts], lacks[capability.HostPortMapping] = why, why
	case in.user:
		notes[capability.HostPorts] = "by TCP and UDP; ports below 1024 need the rights of root"
	default:
		notes[capability.HostPorts] = "the network of pods must have the plugin portmap"
	}
}

// hasSELinux reports whether the kernel has SELinux. Without SELinux, labels have no effect, so they are not
// refused.
func hasSELinux() bool {
	_, err := os.Stat("/sys/fs/selinux/enforce")
	return err == nil
}
