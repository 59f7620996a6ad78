// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"fmt"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// Config returns the OCI configuration of a container with the root file system root. capabilities are the names
// of spec.Caps. The error names the part of spec that a runtime does not support.
func Config(spec *shim.Spec, root string, capabilities []string) ([]byte, error) {
	if spec.OCI != nil && spec.OCI.Sandbox != "" {
		return guestConfig(spec, root, capabilities)
	}
	mounts, err := allMounts(spec)
	if err != nil {
		return nil, err
	}
	devices, rules, err := podDevices(spec)
	if err != nil {
		return nil, err
	}
	group, err := groupOf(spec.Cgroup)
	if err != nil {
		return nil, err
	}
	score := spec.OOMScoreAdj
	c := &specs.Spec{
		Version: "1.0.2", // older runtimes refuse later versions, and none is needed
		Process: &specs.Process{
			Terminal: spec.TTY, Args: spec.Argv, Env: spec.Env, Cwd: spec.Cwd, NoNewPrivileges: spec.NoNewPrivs, OOMScoreAdj: &score,
			User: specs.User{UID: spec.UID, GID: spec.GID, AdditionalGids: spec.Groups},
			// No capability is inheritable or ambient: as with other runtimes, a program of a non-root user has
			// none.
			Capabilities: &specs.LinuxCapabilities{Bounding: capabilities, Effective: capabilities, Permitted: capabilities},
		},
		Root: &specs.Root{Path: root, Readonly: spec.ReadOnly}, Hostname: spec.Hostname, Mounts: mounts,
		Linux: &specs.Linux{
			Namespaces: linuxNamespaces(spec), CgroupsPath: group, Sysctl: spec.Sysctls,
			Devices: devices, Resources: &specs.LinuxResources{Devices: rules},
			MaskedPaths: spec.Masked, ReadonlyPaths: spec.ReadOnlyPaths, RootfsPropagation: rootPropagation(spec),
		},
	}
	if spec.Seccomp {
		if c.Linux.Seccomp, err = seccomp.GetDefaultProfile(c); err != nil {
			return nil, fmt.Errorf("make the default seccomp profile: %w", err)
		}
	}
	return json.Marshal(c)
}

// linuxNamespaces returns the namespaces that the container creates or joins.
func linuxNamespaces(spec *shim.Spec) []specs.LinuxNamespace {
	all := []specs.LinuxNamespace{{Type: specs.MountNamespace}, {Type: specs.UTSNamespace}}
	if !spec.HostIPC {
		all = append(all, specs.LinuxNamespace{Type: specs.IPCNamespace})
	}
	switch {
	case spec.PIDOf != 0:
		all = append(all, specs.LinuxNamespace{Type: specs.PIDNamespace, Path: fmt.Sprintf("/proc/%d/ns/pid", spec.PIDOf)})
	case !spec.HostPID:
		all = append(all, specs.LinuxNamespace{Type: specs.PIDNamespace})
	}
	if spec.NetNS != "" {
		all = append(all, specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: spec.NetNS})
	}
	// With version 1 and no cgroup namespace, the runtime shows a container only its own cgroups.
	if spec.Cgroup.V2 != "" && !spec.Privileged {
		all = append(all, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	return all
}

// rootPropagation returns the mount propagation of the root, which depends on the volumes.
func rootPropagation(spec *shim.Spec) string {
	out := "rprivate"
	for _, m := range spec.Mounts {
		switch {
		case m.Shared:
			return "rshared"
		case m.Slave:
			out = "rslave"
		}
	}
	return out
}
