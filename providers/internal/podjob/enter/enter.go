// SPDX-License-Identifier: Apache-2.0

// Package enter is the first code that runs in the processes of jobs.
//
// The guarantee: a process becomes the program of its container before the expensive packages are initialized, because their initialization takes
// many times as long as the work here. Go sorts packages by path, and repeatedly initializes the first package whose imports are initialized. So this
// package has almost no imports, and does its work in its init function. The packages of Kubernetes and net/http have paths that sort after this
// package, or import a package with such a path.
//
// Note: os.Args decides whether the process runs this code or the normal main function.
package enter

// Marker is the first argument of a process of a job.
const Marker = "virtual-kubelet-podjob"

// Modes of such a process, the second argument.
const (
	ModeRun    = "run"    // supervises a pod; the third argument names the host, later ones are for the host
	ModeStream = "stream" // connects with the socket that the third argument names
	ModeEnter  = "enter"  // begins a process of a container
)

// Entry is the configuration of a container's process. It is sent through a pipe, so no part of it is in a command line or on a disk.
type Entry struct {
	Argv, Env  []string
	Dir        string
	Mounts     []Mount
	Root       string // an empty directory for its root
	Hide       string // a directory of the machine that is hidden from the container
	Image      string // the files of its image; "": the machine's
	Upper      string // a directory for the container's changes to the image
	UID, GID   int
	Groups     []int
	NoNewPrivs bool
	Without    []string // devices of the machine that the container must not have
	Hooks      []Hook   // programs of the machine that complete the root
	Bundle     string   // a directory with the config.json for the hooks
	// Confined removes every capability that containers usually lack, and the right to make devices.
	Confined bool
	// Cgroup is the directory of the container's cgroup: the container sees no other cgroup. "": the cgroup of the starting process.
	Cgroup string
	// OOMScore is the oom_score_adj of a process with a Cgroup.
	OOMScore int64
	// Inside means that the process is already in the namespaces of the container.
	Inside bool
}

// Mount is a directory or a file of the machine at a path of the container.
type Mount struct {
	Source, Target string
	ReadOnly       bool
}

// Hook is a createContainer hook of the OCI runtime specification.
type Hook struct {
	Path      string
	Args, Env []string
}

// Mark is the byte that a process writes right before it becomes the program of its container. If the process ends earlier, the program has not run.
const Mark = '+'
