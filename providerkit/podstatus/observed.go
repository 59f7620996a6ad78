// SPDX-License-Identifier: Apache-2.0

package podstatus

import "time"

// Pod is a backend's report about a pod.
type Pod struct {
	// StartedAt is when the backend accepted the pod; the zero time is not known.
	StartedAt time.Time
	// IPs and HostIPs are addresses, the primary family first. Empty means not known.
	IPs, HostIPs []string
	// Ended means that nothing of the pod runs any more, or will run again. If it is false, the containers may still show the end of the
	// pod.
	Ended bool
	// Failed means that the backend ended the pod, whatever the exit codes of its containers: for example, it
	// took a spot instance away. It counts only with Ended.
	Failed bool
	// Reason and Message are about the pod as a whole.
	Reason, Message string
	// Containers are the reported containers, including init containers and ephemeral containers, in any order.
	// Missing containers are waiting; names that the pod lacks are ignored.
	Containers []Container
}

// ParseTime returns a time of RFC 3339 in an answer of a backend, or zero if the time is missing or cannot be parsed.
func ParseTime(text string) time.Time {
	t, _ := time.Parse(time.RFC3339, text)
	return t
}

// EndRunning records that the containers of the pod no longer run, and that it is unknown how the running containers ended.
func (p *Pod) EndRunning() {
	p.Ended = true
	for i := range p.Containers {
		if c := &p.Containers[i]; c.State == Running {
			c.State = Exited
		}
	}
}

// NotReady records that no container of the pod is ready.
func (p *Pod) NotReady() {
	for i := range p.Containers {
		p.Containers[i].Ready = new(false)
	}
}

// State is the state of a container.
type State int

const (
	// Waiting means that the container was not started yet, or is about to start again.
	Waiting State = iota
	// Running means that the container runs.
	Running
	// Exited means that the container has ended.
	Exited
)

// Container is the report of a backend about a container.
type Container struct {
	Name  string
	State State
	// Run is the current run, or in the state Exited the run that ended. It is ignored in the state Waiting.
	Run Run
	// Last is the previous run; nil if there was none or it is unknown. Without its ExitCode, lastState stays empty, because the API
	// requires an exit code.
	Last *Run
	// Restarts is the number of earlier runs.
	Restarts int32
	// Reason and Message say why a container is Waiting, such as CrashLoopBackOff or ImagePullBackOff. "" stands
	// for a kubelet's reason for a container about to start.
	Reason, Message string
	// Image and ImageID are the running image; an empty Image stands for the image of the spec.
	Image, ImageID string
	// Started and Ready are results of probes. Nil means a backend without the probe: a running container has
	// started, and is ready.
	Started, Ready *bool
}

// Run is one run of a container.
type Run struct {
	// ID is the ID of the container with the scheme of the backend: aci://… for example.
	ID        string
	StartedAt time.Time

	// The end of a run. A nil ExitCode is unknown to the backend: the container then waits, with the reason
	// ContainerStatusUnknown.
	FinishedAt time.Time
	ExitCode   *int32
	// Reason is "" or the backend's: OOMKilled for example. Message is the termination message.
	Reason, Message string
}
