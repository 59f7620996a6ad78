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

// These annotations identify the containers of a sandbox, and the sandbox itself, to a runtime.
const (
	kindAnnotation    = "io.kubernetes.cri.container-type"
	sandboxAnnotation = "io.kubernetes.cri.sandbox-id"
	// volumeAnnotation is the prefix of the annotations about volumes for the kernel of the sandbox.
	volumeAnnotation = "dev.gvisor.spec.mount."
	// rootAnnotation is the prefix of the annotations about the root.
	rootAnnotation = "dev.gvisor.spec.rootfs."
)

// guestConfig returns the configuration of a container in a sandbox with a kernel of its own, or of the sandbox. It
// has no control group. Except for the network, its namespaces belong to that kernel.
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
				// That kernel knows a namespace by its name; there is no such file.
				{Type: specs.PIDNamespace, Path: o.PIDs},
			},
			MaskedPaths: spec.Masked, ReadonlyPaths: spec.ReadOnlyPaths,
		},
	}
	if kind == "container" { // the sandbox is one process with the lowest score of its containers
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

// ofVolume returns the annotations of a sandbox for a file system in its kernel's memory at mounts of that
// directory. They begin with a name of the volume without another use.
func ofVolume(number int, v shim.MemoryVolume) map[string]string {
	name := fmt.Sprintf("%sv%d.", volumeAnnotation, number)
	return map[string]string{
		name + "source": v.Dir, name + "type": "tmpfs", name + "share": "pod",
		name + "options": fmt.Sprintf("rw,mode=%o,uid=%d,gid=%d,size=%d", v.Mode, v.UID, v.GID, v.Size),
	}
}

// guestMounts returns the mounts of every container, except for the control groups.
func guestMounts(spec *shim.Spec) ([]specs.Mount, error) {
	all, err := allMounts(spec)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m specs.Mount) bool { return m.Type == "cgroup" })
	for i := range all {
		// That kernel has no recursive options. It would ignore them in silence. All options of a mount apply
		// below it, too.
		if at := slices.Index(all[i].Options, "rro"); at >= 0 {
			all[i].Options[at] = "ro"
		}
	}
	if spec.OCI.ID == spec.OCI.Sandbox {
		return all, nil
	}
	// Programs read their limits in the files where the machine has them. That kernel keeps no limits, and shows
	// none.
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

// refuseGuest refuses settings with power over the machine and without a meaning for another kernel.
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
