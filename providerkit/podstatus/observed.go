// SPDX-License-Identifier: Apache-2.0

package podstatus

import "time"

// Pod is what a backend says of a pod.
type Pod struct {
	// StartedAt is when the backend accepted the pod; the zero time is not known.
	StartedAt time.Time
	// IPs and HostIPs are addresses, the first one of the primary family; none are not known.
	IPs, HostIPs []string
	// Ended is that nothing of the pod runs any more, and nothing of it will. False says nothing: the containers may.
	Ended bool
	// Failed is that a pod that has Ended was ended by its backend, whatever its containers exited with: a spot
	// instance that was taken away for example.
	Failed bool
	// Reason and Message are about the pod as a whole.
	Reason, Message string
	// Containers are those that the backend tells of, init containers and ephemeral ones too, in any order. Those that are not
	// there wait, and names that the pod does not have are left out.
	Containers []Container
}

// State is what a container does.
type State int

const (
	// Waiting is a container that has not been started, or that is about to be started again.
	Waiting State = iota
	// Running is a container that runs.
	Running
	// Exited is a container that has ended.
	Exited
)

// Container is what a backend says of a container.
type Container struct {
	Name  string
	State State
	// Run is the run that is on, or that ended in the state Exited. In the state Waiting it is not looked at.
	Run Run
	// Last is the run before; nil if there was none, or nothing is known of it. Without its ExitCode lastState stays empty, because the API has no end
	// without one.
	Last *Run
	// Restarts is how many runs came before this one.
	Restarts int32
	// Reason and Message say why a container is Waiting: CrashLoopBackOff or ImagePullBackOff for example. "" is as a
	// kubelet calls a container that is about to be started.
	Reason, Message string
	// Image and ImageID are what runs; "" for Image is that of the spec.
	Image, ImageID string
	// Started and Ready are what probes say. Nil is a backend without the probe: what runs has started, and is ready.
	Started, Ready *bool
}

// Run is one run of a container.
type Run struct {
	// ID is the ID of the container with the scheme of the backend: aci://… for example.
	ID        string
	StartedAt time.Time

	// Of a run that has ended. A nil ExitCode is one that the backend does not tell: the container then waits,
	// with the reason ContainerStatusUnknown.
	FinishedAt time.Time
	ExitCode   *int32
	// Reason is "" or the backend's: OOMKilled for example. Message is the termination message.
	Reason, Message string
}
