// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/podnet"
)

// Argv0 is the argv[0] that makes the binary run as a shim.
const Argv0 = "virtual-kubelet-container"

// The files in the directory of a container.
const (
	stateFile  = "state.json"
	socketFile = "s"
	shimLog    = "shim.log"
	// networkErrorFile has the reason why the sandbox cannot be attached to the network again. It exists as long
	// as that fails.
	networkErrorFile = "network-error"
	// rootDir is the directory of the container's root file system.
	rootDir = "rootfs"
	// heldDir is the directory in the bundle where holdMounts mounts the sources of mounts. Outside of the
	// runtime's mount namespace it is empty.
	heldDir = "held"
)

// Mount is a directory or file of the machine in a container.
type Mount struct {
	Source, Target string
	// Way is the path from Source, a directory that no container can replace, to the file. Its steps are
	// separated by //, and each is resolved beneath the step before. The file is opened once, when the container
	// is created. If Way is empty, Source itself is mounted.
	Way                         string `json:",omitempty"`
	ReadOnly, RecursiveReadOnly bool
	// Shared and Slave set the mount propagation.
	Shared, Slave bool
	// Device is true if the mount is a device for the container.
	Device bool
}

// MemoryVolume is a tmpfs that the containers of a sandbox share. Dir is its directory on the machine.
type MemoryVolume struct {
	Dir            string
	Mode, UID, GID uint32
	// Size is its size in bytes.
	Size int64
}

// Spec is the configuration of a container for a shim.
type Spec struct {
	Argv, Env []string
	Cwd       string
	Hostname  string
	// Image is the directory of the image, the lower layer of the root. If it is empty, rootDir is the complete
	// root.
	Image    string
	ReadOnly bool
	Mounts   []Mount
	// Masked are the paths to hide, and ReadOnlyPaths the paths to make read-only.
	Masked, ReadOnlyPaths []string
	Sysctls               map[string]string

	UID, GID   uint32
	Groups     []uint32
	Caps       uint64
	NoNewPrivs bool
	// Seccomp enables the runtime's default seccomp profile. It needs a runtime.
	Seccomp    bool
	Privileged bool
	HostPID    bool
	HostIPC    bool
	// NetNS is the file of the network namespace, or "" for the host network.
	NetNS string
	// Network is the network of a sandbox without a network namespace, or nil: see package podnet.
	Network *Network `json:",omitempty"`
	// PIDOf is a process whose pid namespace the container joins; 0 means a new namespace.
	PIDOf       int
	OOMScoreAdj int

	TTY, Stdin, StdinOnce bool
	// LogPath is the path of the log in LogDir, the log directory of the pod. "" means no log.
	LogPath, LogDir string
	Cgroup          Cgroup
	// OCI is the runtime of the container. It is nil for a program of the machine, which uses only Argv, Env,
	// Cwd, the user, Caps, NoNewPrivs and Cgroup.
	OCI *OCI `json:",omitempty"`
}

// Network is the configuration of a sandbox's network.
type Network struct {
	// Socket is the path of the network process's socket.
	Socket string
	Pod    podnet.Pod
	Link   podnet.Link
}

// NetworkError returns why the sandbox in dir cannot be attached to its network again, or "" if there is no such failure.
func NetworkError(dir string) string {
	why, err := os.ReadFile(filepath.Join(dir, networkErrorFile))
	if err != nil {
		return ""
	}
	return string(why)
}

// OCI is the part of a container's configuration for an OCI runtime.
type OCI struct {
	oci.Runtime
	// ID is the container ID for the runtime.
	ID string
	// Bundle is the bundle directory, in memory.
	Bundle string
	// Config is the content of the bundle's configuration file.
	Config json.RawMessage `json:",omitempty"`
	// Sandbox is the ID of the container's gVisor sandbox, or its own ID if it is the sandbox. It is empty for
	// other runtimes.
	Sandbox string `json:",omitempty"`
	// Supervisor is the directory of the sandbox's supervisor, and Group the cgroup of the sandbox.
	Supervisor string `json:"Keeper,omitempty"` // existing state files use this name
	Group      Cgroup `json:",omitzero"`
	// Volumes are the memory volumes that gVisor mounts as its own tmpfs. Only the sandbox has them.
	Volumes []MemoryVolume `json:",omitempty"`
	// RootImage is an image file of the sandbox's root. If it is empty, the root is the directory rootDir.
	RootImage string `json:"-"`
	// PIDs identifies the pid namespace, for containers of the sandbox that share one.
	PIDs string `json:",omitempty"`
}

// Held returns the path from which the runtime mounts the mount with the index: its Source if no mount has to be
// opened first, or else a path in heldDir.
func (s Spec) Held(i int) string {
	if s.Mounts[i].Way == "" {
		return s.Mounts[i].Source
	}
	return filepath.Join(s.OCI.Bundle, heldDir, strconv.Itoa(i))
}

// opensMounts reports whether holdMain must open the mounts before the runtime does.
func (s Spec) opensMounts() bool {
	return s.hasNestedMounts() || slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Way != "" })
}

// hasNestedMounts reports whether a mount point is in a volume. The runtime creates the mount point there, and
// another container may have put a symbolic link on its path. Privileged containers do not count, because they
// control the machine anyway, and only they can propagate mounts to it.
func (s Spec) hasNestedMounts() bool {
	shared := slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Shared })
	return s.OCI != nil && !s.Privileged && !shared && slices.ContainsFunc(s.Mounts, func(m Mount) bool {
		return slices.ContainsFunc(s.Mounts, func(above Mount) bool {
			return strings.HasPrefix(filepath.Clean(m.Target), strings.TrimSuffix(filepath.Clean(above.Target), "/")+"/")
		})
	})
}

// Public returns the spec without parts that may be secret: the environment, and the command, which may contain
// values of the environment.
func (s Spec) Public() Spec {
	s.Env, s.Argv = nil, nil
	if s.OCI != nil {
		o := *s.OCI
		o.Config = nil
		s.OCI = &o
	}
	return s
}

// Process identifies a process, even if its PID is reused later.
type Process struct {
	PID   int
	Start uint64
}

// State is the state of a container, written by its shim.
type State struct {
	Shim, Init Process
	StartedAt  time.Time
	FinishedAt time.Time
	ExitCode   int
	// Reason is set if the exit code is not enough: OOMKilled, StartError, Unknown.
	Reason, Message string
}

// Unknown is the reason of a container whose supervisor ended without a final state.
const Unknown = "Unknown"

// Started reports whether the process was started.
func (s State) Started() bool { return !s.StartedAt.IsZero() }

// Ended reports whether the container has ended.
func (s State) Ended() bool { return !s.FinishedAt.IsZero() }

// ReadState returns the state of the container in dir, or the zero value before its start. If the shim ended
// without a final state, ReadState kills the container and records the reason Unknown.
func ReadState(dir string) (State, error) {
	var s State
	err := durable.ReadJSON(filepath.Join(dir, stateFile), &s)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil || s.Ended() || s.Shim.Alive() {
		return s, err
	}
	// Read again: the shim may have written its final state and ended since the first read.
	if err := durable.ReadJSON(filepath.Join(dir, stateFile), &s); err != nil || s.Ended() {
		return s, err
	}
	// The kernel kills the process only if the supervisor started it, not if a runtime did.
	if err := KillProcess(s.Init); err != nil {
		return s, err
	}
	s.FinishedAt, s.ExitCode, s.Reason = time.Now(), 255, Unknown
	s.Message = "the supervisor of the container was killed"
	if err := durable.WriteLastJSON(filepath.Join(dir, stateFile), s); err != nil {
		// On a full disk, use the time of the file, so that every read returns the same time.
		if info, err := os.Stat(filepath.Join(dir, stateFile)); err == nil {
			s.FinishedAt = info.ModTime()
		}
	}
	return s, nil
}

// Cgroup is the cgroup of a container: one directory in version 2, one for each controller in version 1. The zero
// value means no cgroup.
type Cgroup struct {
	// V2 is the directory in the unified hierarchy.
	V2 string
	// V1 are the directories by controller.
	V1 map[string]string
}

// Dirs returns all directories of the cgroup.
func (g Cgroup) Dirs() []string {
	var dirs []string
	for _, dir := range g.V1 {
		dirs = append(dirs, dir)
	}
	if g.V2 != "" {
		dirs = append(dirs, g.V2)
	}
	return dirs
}
