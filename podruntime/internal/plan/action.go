// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Kind is the kind of an Action.
type Kind int

const (
	// SetupVolumes sets up the volumes of the pod.
	SetupVolumes Kind = iota + 1
	// RunSandbox runs a sandbox with number Attempt.
	RunSandbox
	// StopSandbox stops the sandbox ID.
	StopSandbox
	// Start pulls the image of Container, creates instance number Attempt of it in the sandbox
	// SandboxID, starts it and runs its postStart hook. The kind of the container does not matter.
	Start
	// CancelStart ends the Start of Container in progress, as far as possible, because the pod must end. It
	// begins and ends at once.
	CancelStart
	// BackOff means that Container waits before its next start. It only records an event; it begins and ends at
	// once.
	BackOff
	// Kill means that the instance ID is about to stop, for the reason in Event. It only records an event; it begins and ends at once. PreStop and
	// Stop follow.
	Kill
	// PreStop runs the preStop hook of the instance ID for no longer than Grace.
	PreStop
	// Stop stops the instance ID: it receives its stop signal, and is killed after Grace. Stop may be repeated with a shorter Grace while the first
	// call still waits, or while a PreStop does.
	Stop
	// Resize gives the running instance ID the resources of its container in the spec.
	Resize
	// RemoveContainer removes the instance ID, which has ended or never ran.
	RemoveContainer
	// Finish removes the volumes of the pod, after all containers have ended and its sandboxes have stopped. Afterwards, the status of the pod is
	// terminal.
	Finish
	// RemoveSandbox removes the sandbox ID, which has no containers.
	RemoveSandbox
)

var kinds = [...]string{
	"", "SetupVolumes", "RunSandbox", "StopSandbox", "Start", "CancelStart", "BackOff", "Kill", "PreStop", "Stop", "Resize",
	"RemoveContainer", "Finish", "RemoveSandbox",
}

func (k Kind) String() string { return kinds[k] }

// Action is an action for a pod.
type Action struct {
	Kind      Kind
	Container string        // the name, for actions on containers
	ID        string        // of the instance or of the sandbox
	SandboxID string        // of Start
	Attempt   uint32        // of RunSandbox and Start
	Grace     time.Duration // of PreStop and Stop
	// Last is a field of Stop. It means that the pod ends, so no more containers start in its sandbox.
	Last bool
	// Event is recorded when the action begins, if it is set. It is about the container, if there is one.
	Event *Event

	// Resources are the new resources for Resize.
	Resources *corev1.ResourceRequirements

	backoff backoff   // of Start: the wait of the container after this instance
	until   time.Time // of BackOff, Kill, PreStop and Stop: the end of the action
	restart bool      // of Kill: the container restarts, independently of its policy
	waiting string    // of BackOff: the message of the waiting container
}

// Event is an event of a pod.
type Event struct {
	Type, Reason, Message string
}

// Plan has the next actions of one pod.
type Plan struct {
	// Actions can all begin now, in this order.
	Actions []Action
	// Again is the time of the next pass without an event. Zero means to wait for an event.
	Again time.Time
	// Gone means that a deleted pod is completely removed, so the worker can forget it.
	Gone bool
}

// Outcome is the result of an action. The zero value is success.
type Outcome struct {
	// ID is the instance or sandbox that Start or RunSandbox made, even after a later failure.
	ID string
	// Reason and Message describe the failure of the action. For Start, Reason is the reason of the waiting
	// container: ErrImagePull, ImagePullBackOff, ErrImageNeverPull, InvalidImageName,
	// CreateContainerConfigError, CreateContainerError, RunContainerError or PostStartHookError.
	Reason  string
	Message string
	// RetryAfter is the time until the next attempt; with 0, the plan decides. After a successful SetupVolumes, it is the time until the next check
	// of the volumes.
	RetryAfter time.Duration
}
