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

// Argv0 is the name that the binary is run by to be a shim.
const Argv0 = "virtual-kubelet-container"

// The files in the directory of a container.
const (
	stateFile  = "state.json"
	socketFile = "s"
	shimLog    = "shim.log"
	// networkErrorFile is there as long as the network process does not take the sandbox again, and says why.
	networkErrorFile = "network-error"
	// rootDir is where the root of the container is made.
	rootDir = "rootfs"
	// heldDir is where the runtime finds what mounts lead to, in the directory of the bundle. Outside of the runtime it is empty.
	heldDir = "held"
)

// Mount is a directory or file of the machine that a container sees.
type Mount struct {
	Source, Target string
	// Way leads from Source, a directory that no container can replace, to what is mounted: steps with // between them, each beneath the one
	// before. What it leads to is opened once, when the container is made. "" is Source itself.
	Way                         string `json:",omitempty"`
	ReadOnly, RecursiveReadOnly bool
	// Shared and Slave are how later mounts below it are passed on.
	Shared, Slave bool
	// Device keeps device nodes usable.
	Device bool
}

// MemoryVolume is a file system in memory that containers of a sandbox share, and mount from the directory of the machine that has its
// content.
type MemoryVolume struct {
	Dir            string
	Mode, UID, GID uint32
	// Size is how many bytes it holds.
	Size int64
}

// Spec is a container as a shim starts it.
type Spec struct {
	Argv, Env []string
	Cwd       string
	Hostname  string
	// Image is the directory below the container's own layer; "" means that rootDir is the whole root.
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
	// Seccomp filters system calls by the runtime's default profile. Only a runtime does.
	Seccomp    bool
	Privileged bool
	HostPID    bool
	HostIPC    bool
	// NetNS is the file of the network namespace; "" for the machine's.
	NetNS string
	// Network is the network of a sandbox that has no namespace of the machine: see package podnet. Nil for none.
	Network *Network `json:",omitempty"`
	// PIDOf is a process whose pid namespace is joined, instead of a new one; 0 for none.
	PIDOf       int
	OOMScoreAdj int

	TTY, Stdin, StdinOnce bool
	// LogPath is the log, in LogDir, the directory of those of the pod; "" for none.
	LogPath, LogDir string
	Cgroup          Cgroup
	// OCI is the runtime that makes the container; nil for a program of the machine, which gets what Argv, Env, Cwd, the user,
	// Caps, NoNewPrivs and Cgroup say, and nothing else.
	OCI *OCI `json:",omitempty"`
}

// Network is what the supervisor of a sandbox makes its network from.
type Network struct {
	// Socket is that of the network process.
	Socket string
	Pod    podnet.Pod
	Link   podnet.Link
}

// NetworkError is why the sandbox in dir has no network any more; "" if it has one.
func NetworkError(dir string) string {
	why, err := os.ReadFile(filepath.Join(dir, networkErrorFile))
	if err != nil {
		return ""
	}
	return string(why)
}

// OCI is a container as a runtime of the Open Container Initiative makes it.
type OCI struct {
	oci.Runtime
	// ID is its name for the runtime.
	ID string
	// Bundle is the directory of its files, which is in memory.
	Bundle string
	// Config is its configuration.
	Config json.RawMessage `json:",omitempty"`
	// Sandbox is the ID of the sandbox that it is in, or is: the runtime has a kernel of its own for each. "" for processes of the machine.
	Sandbox string `json:",omitempty"`
	// Supervisor is the directory of the supervisor of that sandbox, and Group its control group.
	Supervisor string `json:"Keeper,omitempty"` // the name is that of states on disk
	Group      Cgroup `json:",omitzero"`
	// Volumes are file systems in memory that the kernel of the sandbox has by itself. Only the sandbox has them.
	Volumes []MemoryVolume `json:",omitempty"`
	// RootImage is a file with the root of the sandbox; "" if that is the directory rootDir.
	RootImage string `json:"-"`
	// PIDs names the pid namespace, for containers of the sandbox that share one.
	PIDs string `json:",omitempty"`
}

// Held is where the runtime finds what a mount leads to, by the index of the mount; Source where it finds that itself.
func (s Spec) Held(i int) string {
	if s.Mounts[i].Way == "" {
		return s.Mounts[i].Source
	}
	return filepath.Join(s.OCI.Bundle, heldDir, strconv.Itoa(i))
}

// holds tells whether what a mount leads to is opened before the runtime has it.
func (s Spec) holds() bool {
	return s.nested() || slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Way != "" })
}

// nested tells whether something is mounted in a volume: the runtime makes a directory for it there, when another container may have put a
// link on the way. Privileged containers have power over the machine anyway, and only they pass mounts on to it.
func (s Spec) nested() bool {
	shared := slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Shared })
	return s.OCI != nil && !s.Privileged && !shared && slices.ContainsFunc(s.Mounts, func(m Mount) bool {
		return slices.ContainsFunc(s.Mounts, func(above Mount) bool {
			return strings.HasPrefix(filepath.Clean(m.Target), strings.TrimSuffix(filepath.Clean(above.Target), "/")+"/")
		})
	})
}

// Public is the spec without what may be secret: the environment, and the command, which can have parts of it.
func (s Spec) Public() Spec {
	s.Env, s.Argv = nil, nil
	if s.OCI != nil {
		o := *s.OCI
		o.Config = nil
		s.OCI = &o
	}
	return s
}

// Process is a process that cannot be mistaken for a later one with its number.
type Process struct {
	PID   int
	Start uint64
}

// State is what a shim knows of its container.
type State struct {
	Shim, Init Process
	StartedAt  time.Time
	FinishedAt time.Time
	ExitCode   int
	// Reason is set when the exit code does not say enough: OOMKilled, StartError, Unknown.
	Reason, Message string
}

// Unknown is the reason of a container whose supervisor has gone without a word.
const Unknown = "Unknown"

// Started tells whether there was a process.
func (s State) Started() bool { return !s.StartedAt.IsZero() }

// Ended tells whether the container is over.
func (s State) Ended() bool { return !s.FinishedAt.IsZero() }

// ReadState returns the state of the container in dir: a zero one before it is started. A container
// whose shim has gone without a word has ended, nobody knows how.
func ReadState(dir string) (State, error) {
	var s State
	err := durable.ReadJSON(filepath.Join(dir, stateFile), &s)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil || s.Ended() || s.Shim.Alive() {
		return s, err
	}
	// The shim writes its final state before it ends: what was read above may be older than that.
	if err := durable.ReadJSON(filepath.Join(dir, stateFile), &s); err != nil || s.Ended() {
		return s, err
	}
	// The kernel does it where the supervisor was its parent from the start, and not where a runtime made it.
	if err := KillProcess(s.Init); err != nil {
		return s, err
	}
	s.FinishedAt, s.ExitCode, s.Reason = time.Now(), 255, Unknown
	s.Message = "the supervisor of the container was killed"
	if err := durable.WriteLastJSON(filepath.Join(dir, stateFile), s); err != nil {
		// A full disk does not change how it ended; the time is one that stays the same whenever it is asked for.
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
