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

// Argv0 is the name that makes the binary a shim.
const Argv0 = "virtual-kubelet-container"

// The files in the directory of a container.
const (
	stateFile  = "state.json"
	socketFile = "s"
	shimLog    = "shim.log"
	// networkErrorFile exists as long as the network process refuses to attach the sandbox again, and has the
	// reason.
	networkErrorFile = "network-error"
	// rootDir is the directory in which the root of the container is made.
	rootDir = "rootfs"
	// heldDir has the targets of mounts for the runtime, in the directory of the bundle. Outside of the runtime
	// it is empty.
	heldDir = "held"
)

// Mount is a directory or file of the machine in a container.
type Mount struct {
	Source, Target string
	// Way leads from Source, a directory that no container can replace, to the file, with // between its steps,
	// each beneath the step before. The file is opened once, at the creation of the container. "" stands for
	// Source itself.
	Way                         string `json:",omitempty"`
	ReadOnly, RecursiveReadOnly bool
	// Shared and Slave are the propagation of later mounts below it.
	Shared, Slave bool
	// Device keeps device nodes usable.
	Device bool
}

// MemoryVolume is a file system in memory that containers of a sandbox share. They mount it from the directory
// of the machine with its content.
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
	// Image is the directory below the container's own layer; with "" rootDir is the whole root.
	Image    string
	ReadOnly bool
	Mounts   []Mount
	// Masked and ReadOnlyPaths are hidden or kept from writes.
	Masked, ReadOnlyPaths []string
	Sysctls               map[string]string

	UID, GID   uint32
	Groups     []uint32
	Caps       uint64
	NoNewPrivs bool
	// Seccomp filters system calls by the runtime's default profile. It needs a runtime.
	Seccomp    bool
	Privileged bool
	HostPID    bool
	HostIPC    bool
	// NetNS is the file of the network namespace; "" for the machine's.
	NetNS string
	// Network is the network of a sandbox without a namespace of the machine, or nil: see package podnet.
	Network *Network `json:",omitempty"`
	// PIDOf is a process whose pid namespace the container joins; 0 means a new namespace.
	PIDOf       int
	OOMScoreAdj int

	TTY, Stdin, StdinOnce bool
	// LogPath is the log, in LogDir, the log directory of the pod; "" means no log.
	LogPath, LogDir string
	Cgroup          Cgroup
	// OCI is the runtime that makes the container. It is nil for a program of the machine, which uses only Argv,
	// Env, Cwd, the user, Caps, NoNewPrivs and Cgroup.
	OCI *OCI `json:",omitempty"`
}

// Network is the input for a sandbox's network.
type Network struct {
	// Socket is the socket of the network process.
	Socket string
	Pod    podnet.Pod
	Link   podnet.Link
}

// NetworkError returns the reason why the sandbox in dir has no network any more; "" if it has one.
func NetworkError(dir string) string {
	why, err := os.ReadFile(filepath.Join(dir, networkErrorFile))
	if err != nil {
		return ""
	}
	return string(why)
}

// OCI is the part of a container's configuration for a runtime of the Open Container Initiative.
type OCI struct {
	oci.Runtime
	// ID is its name for the runtime.
	ID string
	// Bundle is the directory of its files, in memory.
	Bundle string
	// Config is its configuration.
	Config json.RawMessage `json:",omitempty"`
	// Sandbox is the ID of its sandbox, or its own ID if it is the sandbox: the runtime has a kernel for each.
	// "" stands for processes of the machine.
	Sandbox string `json:",omitempty"`
	// Supervisor is the directory of the sandbox's supervisor, and Group its control group.
	Supervisor string `json:"Keeper,omitempty"` // existing state files use this name
	Group      Cgroup `json:",omitzero"`
	// Volumes are file systems in memory that the kernel of the sandbox holds by itself. Only the sandbox has
	// them.
	Volumes []MemoryVolume `json:",omitempty"`
	// RootImage is a file with the root of the sandbox; with "" the root is the directory rootDir.
	RootImage string `json:"-"`
	// PIDs names the pid namespace, for containers of the sandbox that share one.
	PIDs string `json:",omitempty"`
}

// Held returns the place of a mount's target for the runtime, by the index of the mount. Source is the place
// without a Way.
func (s Spec) Held(i int) string {
	if s.Mounts[i].Way == "" {
		return s.Mounts[i].Source
	}
	return filepath.Join(s.OCI.Bundle, heldDir, strconv.Itoa(i))
}

// opensMounts reports whether any mount's target is opened before the runtime gets it.
func (s Spec) opensMounts() bool {
	return s.hasNestedMounts() || slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Way != "" })
}

// hasNestedMounts reports whether something is mounted in a volume: the runtime makes a directory for it there, when
// another container may have put a link on the way. Privileged containers have power over the machine anyway,
// and only they pass mounts on to it.
func (s Spec) hasNestedMounts() bool {
	shared := slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Shared })
	return s.OCI != nil && !s.Privileged && !shared && slices.ContainsFunc(s.Mounts, func(m Mount) bool {
		return slices.ContainsFunc(s.Mounts, func(above Mount) bool {
			return strings.HasPrefix(filepath.Clean(m.Target), strings.TrimSuffix(filepath.Clean(above.Target), "/")+"/")
		})
	})
}

// Public returns the spec without parts that may be secret: the environment, and the command, which can contain
// parts of it.
func (s Spec) Public() Spec {
	s.Env, s.Argv = nil, nil
	if s.OCI != nil {
		o := *s.OCI
		o.Config = nil
		s.OCI = &o
	}
	return s
}

// Process identifies a process, even if a later process gets its number.
type Process struct {
	PID   int
	Start uint64
}

// State is a shim's state of its container.
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

// Started reports whether there was a process.
func (s State) Started() bool { return !s.StartedAt.IsZero() }

// Ended reports whether the container is over.
func (s State) Ended() bool { return !s.FinishedAt.IsZero() }

// ReadState returns the state of the container in dir: the zero state before its start. If its shim ended
// without a final state, the container has ended in an unknown way.
func ReadState(dir string) (State, error) {
	var s State
	err := durable.ReadJSON(filepath.Join(dir, stateFile), &s)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil || s.Ended() || s.Shim.Alive() {
		return s, err
	}
	// The shim writes its final state before it ends, so the state above may be older than that.
	if err := durable.ReadJSON(filepath.Join(dir, stateFile), &s); err != nil || s.Ended() {
		return s, err
	}
	// The kernel kills it if the supervisor was its parent from the start, but not if a runtime made it.
	if err := KillProcess(s.Init); err != nil {
		return s, err
	}
	s.FinishedAt, s.ExitCode, s.Reason = time.Now(), 255, Unknown
	s.Message = "the supervisor of the container was killed"
	if err := durable.WriteLastJSON(filepath.Join(dir, stateFile), s); err != nil {
		// A full disk does not change the end; the time stays the same at every read.
		if info, err := os.Stat(filepath.Join(dir, stateFile)); err == nil {
			s.FinishedAt = info.ModTime()
		}
	}
	return s, nil
}

// Cgroup is the control group of a container: one directory in version 2, one for each controller in
// version 1. Without directories there is none.
type Cgroup struct {
	// V2 is the directory in the unified hierarchy.
	V2 string
	// V1 are directories by controller.
	V1 map[string]string
}

// Dirs are all directories.
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
