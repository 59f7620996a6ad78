// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Memory is what the worker of a pod remembers of it, and the runtime does not know. The zero value is that of a pod whose worker
// has just started. It belongs to the worker: nothing here is safe for use by several goroutines.
type Memory struct {
	// StartTime is when the node saw the pod first; status.startTime. The worker sets it once, from the status if that has one.
	StartTime time.Time
	// Probes are the results of probes by container ID, as far as they are known. The worker sets them.
	Probes map[string]Probe
	// Eviction says that the pod must end, and has failed. The worker sets it once.
	Eviction *Eviction
	// ResizePending is why new resources of the pod are not given to its containers. The worker sets it.
	ResizePending *ResizePending

	deletion   *deletion
	volumes    try
	ready      bool // the volumes are set up
	finish     try
	finished   bool // the volumes are removed
	ending     time.Time
	sandbox    try
	sandboxes  map[string]*sandboxMemory   // by ID
	containers map[string]*containerMemory // by name
	instances  map[string]*instanceMemory  // by ID
}

// Eviction is why a pod must end that nobody deleted.
type Eviction struct {
	Reason, Message string
	// Grace is the grace period; nil: the pod's own.
	Grace *time.Duration
}

// ResizePending is why a resize does not begin: Deferred or Infeasible.
type ResizePending struct{ Reason, Message string }

// Result is what a probe of a container says.
type Result int

const (
	// NoResult is a probe that has not come to a result, or that does not exist.
	NoResult Result = iota
	// Success is a probe that succeeded often enough.
	Success
	// Failure is a probe that failed often enough.
	Failure
)

// Probe is what the probes of a container instance say.
type Probe struct{ Startup, Readiness, Liveness Result }

// deletion is the request to end the pod.
type deletion struct {
	since time.Time
	by    time.Time // the end of the grace period
}

// try is an action that is tried until it succeeds.
type try struct {
	busy     bool
	failures int
	again    time.Time
	message  string
}

type sandboxMemory struct {
	stop    try
	stopped bool
	remove  try
	shown   bool
}

// containerMemory is about a container, whichever its instance.
type containerMemory struct {
	starting  bool
	cancelled bool
	attempt   uint32    // of the last start
	id        string    // of the last start that made an instance
	startedAt time.Time // when it ended
	again     time.Time // after a failed start
	// Why it waits, as the status shows it; nil: nothing is known.
	waiting *corev1.ContainerStateWaiting
	// The back-off of CrashLoopBackOff: how long after the end of the last instance, and when it was set.
	delay   time.Duration
	delayAt time.Time
	said    time.Time // the end of the back-off that an event told of
}

// why is why a container is killed.
type why struct {
	restart bool // whatever the restart policy says
}

// instanceMemory is about one instance of a container.
type instanceMemory struct {
	kill     bool
	why      why
	killBy   time.Time // the end of its grace period
	hook     try       // preStop
	hookDone bool
	stop     try
	stopBy   time.Time // of the last Stop
	stopped  bool
	stopEnd  time.Time
	remove   try
	failed   bool // its postStart hook failed
	resize   try
	resized  *corev1.ResourceRequirements
}

// Delete remembers that the pod must end within grace. It can be asked for again: only a shorter time counts.
func (m *Memory) Delete(grace time.Duration, now time.Time) {
	d := deletion{since: now, by: now.Add(grace)}
	if m.deletion != nil {
		d.since = m.deletion.since
		if m.deletion.by.Before(d.by) {
			d.by = m.deletion.by
		}
	}
	m.deletion = &d
}

// Deleted reports whether the pod must end because it was deleted.
func (m *Memory) Deleted() bool { return m.deletion != nil }

// Finished reports whether Finish was done: the pod has ended.
func (m *Memory) Finished() bool { return m.finished }

// VolumesReady reports whether the volumes of the pod are set up.
func (m *Memory) VolumesReady() bool { return m.ready }

// Begin remembers that an action begins. It is called before the action is begun.
func (m *Memory) Begin(a Action, now time.Time) {}

// End remembers how an action ended that Begin was called for.
func (m *Memory) End(a Action, o Outcome, now time.Time) {}
