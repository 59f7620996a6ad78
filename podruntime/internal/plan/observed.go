// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Observed is the runtime's state of one pod. Read it after the last Memory.End. Otherwise, Next could request a completed action again.
type Observed struct {
	// Runtime is the name of the runtime, the scheme of container IDs in a status: containerd for example.
	Runtime string
	// HostIPs are the addresses of the node, beginning with its primary family.
	HostIPs    []string
	Sandboxes  []Sandbox   // in any order
	Containers []Container // in any order, including exited containers
	// RecursiveReadOnly means that the runtime can mount read-only recursively.
	RecursiveReadOnly bool
}

// Sandbox is a sandbox of the pod.
type Sandbox struct {
	ID        string
	Attempt   uint32
	Ready     bool
	CreatedAt time.Time
	IPs       []string // none for a pod in the host's network
	// NoAddress means that the runtime reports the network of the sandbox, and that the sandbox has no address.
	NoAddress bool
}

// State is the state of a container in the runtime.
type State int

const (
	// Unknown means that the runtime has lost the state of the container, which may be running.
	Unknown State = iota
	// Created means that the container was never started.
	Created
	// Running means that the container runs.
	Running
	// Exited means that the container has ended.
	Exited
)

// Container is an instance of a container of the pod.
type Container struct {
	ID        string
	Name      string
	Attempt   uint32 // the number of earlier instances; restartCount in the status
	SandboxID string
	State     State
	CreatedAt time.Time
	StartedAt time.Time

	// End of an exited instance. Message is the termination message.
	FinishedAt time.Time
	ExitCode   int32
	Reason     string
	Message    string

	Image    string // as reported by the runtime
	ImageRef string // the digest; imageID of the status
	// Hash is the label with Hash(container) at creation; "" means unknown.
	Hash string
	// Created are the resources of the spec at the creation of the instance; nil means unknown.
	Created *corev1.ResourceRequirements
	// Resources are the current resources that the runtime reports, or nil if it reports none.
	Resources *corev1.ResourceRequirements
	// User and StopSignal are nil if the runtime does not report them.
	User       *corev1.ContainerUser
	StopSignal *corev1.Signal
}
