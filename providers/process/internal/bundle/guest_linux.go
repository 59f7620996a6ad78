// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// These annotations tell a runtime whether it creates a sandbox or a container in a sandbox.
const (
	kindAnnotation    = "io.kubernetes.cri.container-type"
	sandboxAnnotation = "io.kubernetes.cri.sandbox-id"
	// volumeAnnotation is the prefix of gVisor's annotations about volumes.
	volumeAnnotation = "dev.gvisor.spec.mount."
	// rootAnnotation is the prefix of gVisor's annotations about the root file system.
	rootAnnotation = "dev.gvisor.spec.rootfs."
)

// guestConfig returns the configuration of a gVisor sandbox, or of a container in one. It has no cgroup. Except
// for the network, its namespaces are namespaces of the gVisor kernel.
func guestConfig(spec *shim.Spec, root string, capabilities []string) ([]byte, error) {
	if err := refuseGuest(spec); err != nil {
		return nil, err
	}
	mounts, err := guestMounts(spec)
	if err != nil {
		return nil, err
	}
	o, kind := spec.OCI, "container"
	if o.ID == o.Sandbox {
		kind = "sandbox"
	}
	c := &specs.Spec{
		Version: "1.0.2",
		Process: &specs.Process{
			Terminal: spec.TTY, Args: spec.Argv, Env: spec.Env, Cwd: spec.Cwd, NoNewPrivileges: spec.NoNewPrivs,
			User:         specs.User{UID: spec.UID, GID: spec.GID, AdditionalGids: spec.Groups},
			Capabilities: &specs.LinuxCapabilities{Bounding: capabilities, Effective: capabilities, Permitted: capabilities},
		},
		Root: &specs.Root{Path: root, Readonly: spec.ReadOnly}, Hostname: spec.Hostname, Mounts: mounts,
		Annotations: map[string]string{kindAnnotation: kind, sandboxAnnotation: o.Sandbox},
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.MountNamespace}, {Type: specs.UTSNamespace}, {Type: specs.IPCNamespace},
				// gVisor identifies a namespace by this name; there is no such file.
				{Type: specs.PIDNamespace, Path: o.PIDs},
			},
			MaskedPaths: spec.Masked, ReadonlyPaths: spec.ReadOnlyPaths,
		},
	}
	if kind == "container" { // the score of the sandbox process is the lowest of its containers
		c.Process.OOMScoreAdj = &spec.OOMScoreAdj
	}
	if o.RootImage != "" {
		c.Annotations[rootAnnotation+"type"], c.Annotations[rootAnnotation+"source"] = "erofs", o.RootImage
	}
	for i, v := range o.Volumes {
		maps.Copy(c.Annotations, ofVolume(i, v))
	}
	if spec.NetNS != "" {
		c.Linux.Namespaces = append(c.Linux.Namespaces, specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: spec.NetNS})
	}
	if spec.Seccomp {
		if c.Linux.Seccomp, err = seccomp.GetDefaultProfile(c); err != nil {
			return nil, fmt.Errorf("make the default seccomp profile: %w", err)
		}
	}
	return json.Marshal(c)
}

// ofVolume returns the annotations that make gVisor mount its own tmpfs for a volume. The volume needs a unique
// name, which has no other use.
func ofVolume(number int, v shim.MemoryVolume) map[string]string {
	name := fmt.Sprintf("%sv%d.", volumeAnnotation, number)
	return map[string]string{
		name + "source": v.Dir, name + "type": "tmpfs", name + "share": "pod",
		name + "options": fmt.Sprintf("rw,mode=%o,uid=%d,gid=%d,size=%d", v.Mode, v.UID, v.GID, v.Size),
	}
}

// guestMounts returns the mounts of a gVisor container, without the cgroup mounts of other runtimes.
func guestMounts(spec *shim.Spec) ([]specs.Mount, error) {
	all, err := allMounts(spec)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m specs.Mount) bool { return m.Type == "cgroup" })
	for i := range all {
		// gVisor silently ignores recursive options. It applies all options of a mount to everything below it.
		if at := slices.Index(all[i].Options, "rro"); at >= 0 {
			all[i].Options[at] = "ro"
		}
	}
	if spec.OCI.ID == spec.OCI.Sandbox {
		return all, nil
	}
	// Programs read their limits from the cgroup files of the machine, because gVisor has no such limits and
	// files.
	limits := func(source, target string) {
		all = append(all, bindMount(shim.Mount{Source: source, Target: target, ReadOnly: true}, false))
	}
	if spec.Cgroup.V2 != "" {
		limits(spec.Cgroup.V2, cgroupRoot)
	}
	for _, controller := range slices.Sorted(maps.Keys(spec.Cgroup.V1)) {
		limits(spec.Cgroup.V1[controller], filepath.Join(cgroupRoot, controller))
	}
	opened := 0
	for _, m := range all {
		if m.Type == "bind" {
			opened++
		}
	}
	if opened > MaxGuestMounts {
		return nil, fmt.Errorf("mounts: gVisor starts a container with at most %d files and directories of the machine, and this one has %d", MaxGuestMounts, opened)
	}
	return all, nil
}

// refuseGuest refuses host privileges, which mean nothing to the gVisor kernel.
func refuseGuest(spec *shim.Spec) error {
	switch {
	case spec.Privileged:
		return errors.New("privileged containers: a sandbox of gVisor has no power over the machine")
	case spec.HostPID:
		return errors.New("hostPID: a sandbox of gVisor does not see the processes of the machine")
	case spec.HostIPC:
		return errors.New("hostIPC: a sandbox of gVisor does not share the memory of the machine")
	case len(spec.Sysctls) > 0:
		return errors.New("sysctls: the kernel of gVisor has its own settings")
	}
	for _, m := range spec.Mounts {
		if m.Device {
			return fmt.Errorf("device %s: a sandbox of gVisor has no devices of the machine", m.Source)
		}
		if m.Shared || m.Slave {
			return fmt.Errorf("mount propagation at %s: mounts are not passed on between gVisor and the machine", m.Target)
		}
	}
	return nil
}
