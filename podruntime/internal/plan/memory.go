// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Memory is the state of a pod's worker that the runtime does not store. The zero value belongs to a new worker. The worker owns it: it is not safe
// for concurrent use.
type Memory struct {
	// StartTime is the time at which the node first saw the pod (status.startTime). The worker sets it once,
	// from the status if that has one.
	StartTime time.Time
	// Probes are the known results of probes, by container ID. The worker sets them.
	Probes map[string]Probe
	// Eviction means that the pod must end as failed. The worker sets it once.
	Eviction *Eviction
	// Reclaim means that the containers of an ended pod must be removed to free disk space, but not its sandbox. The worker sets it.
	Reclaim bool
	// ResizePending is the reason why a resize of the pod is not applied. The worker sets it.
	ResizePending *ResizePending

	deletion   *deletion
	volumes    try
	ready      bool // the volumes are set up
	finish     try
	finished   bool // the volumes are removed
	sandbox    try
	sandboxID  string                      // of the last started sandbox
	sandboxAt  time.Time                   // time of that start
	sandboxes  map[string]*sandboxMemory   // by ID
	containers map[string]*containerMemory // by name
	instances  map[string]*instanceMemory  // by ID
}

// Eviction is the reason to end a pod without a deletion.
type Eviction struct {
	Reason, Message string
	// Grace is the grace period, or nil for the pod's own.
	Grace *time.Duration
	// Disruption means that the pod did not cause its end, so a Job does not count it as a failure.
	Disruption bool
}

// ResizePending is the reason why a resize is not applied: Deferred or Infeasible.
type ResizePending struct{ Reason, Message string }

// Result is the result of a probe.
type Result int

const (
	// NoResult means that the probe does not exist, or has no result yet.
	NoResult Result = iota
	// Success means that the probe succeeded often enough.
	Success
	// Failure means that the probe failed often enough.
	Failure
)

// Probe has the results of the probes of a container instance.
type Probe struct{ Startup, Readiness, Liveness Result }

// deletion is the request to end the pod. The grace period ends at by.
type deletion struct{ by time.Time }

type sandboxMemory struct {
	stop    try
	stopped bool
	remove  try
}

// containerMemory is the state of a container, across its instances.
type containerMemory struct {
	starting  bool
	cancelled bool
	id        string    // of the instance from the last successful start
	startedAt time.Time // time of the end of that start
	again     time.Time // time of the retry after a failed start
	// Reason in the status why the container waits, or nil if unknown.
	waiting *corev1.ContainerStateWaiting
	backoff backoff
	said    time.Time // the end of the last back-off whose event was recorded
}

// instanceMemory is the state of one instance of a container.
type instanceMemory struct {
	kill     bool
	restart  bool      // the container restarts after the kill, independently of the restart policy
	killBy   time.Time // the end of its grace period
	hook     try       // preStop
	hookDone bool
	stop     try
	stops    int       // number of stops in progress
	stopBy   time.Time // the deadline of the last stop
	stopped  bool
	stopEnd  time.Time
	remove   try
	failed   bool // the postStart hook failed
	resize   try
	resized  *corev1.ResourceRequirements
}

// Delete records that the pod must end within grace. Later calls can only shorten the grace period.
func (m *Memory) Delete(grace time.Duration, now time.Time) {
	by := now.Add(grace)
	if m.deletion == nil || by.Before(m.deletion.by) {
		m.deletion = &deletion{by: by}
	}
}

// Blocked returns the last error of the volumes or the sandbox of the pod, or "".
func (m *Memory) Blocked() string { return cmp.Or(m.volumes.message, m.sandbox.message) }

// Deleted reports whether the pod must end because it was deleted.
func (m *Memory) Deleted() bool { return m.deletion != nil }

// Finished reports whether Finish was done: the pod has ended.
func (m *Memory) Finished() bool { return m.finished }

// VolumesReady reports whether the volumes of the pod are set up.
func (m *Memory) VolumesReady() bool { return m.ready }

// Starting reports whether a Start of the container is in progress.
func (m *Memory) Starting(name string) bool { return m.containerRecord(name).starting }

// containerRecord returns a copy of the memory of a container.
func (m *Memory) containerRecord(name string) containerMemory {
	if c := m.containers[name]; c != nil {
		return *c
	}
	return containerMemory{}
}

// instanceRecord returns a copy of the memory of an instance.
func (m *Memory) instanceRecord(id string) instanceMemory {
	if i := m.instances[id]; i != nil {
		return *i
	}
	return instanceMemory{}
}

// sandboxRecord returns a copy of the memory of a sandbox.
func (m *Memory) sandboxRecord(id string) sandboxMemory {
	if s := m.sandboxes[id]; s != nil {
		return *s
	}
	return sandboxMemory{}
}

// entryOf returns the entry for a key, and creates it if necessary.
func entryOf[V any](m *map[string]*V, key string) *V {
	if *m == nil {
		*m = map[string]*V{}
	}
	if (*m)[key] == nil {
		(*m)[key] = new(V)
	}
	return (*m)[key]
}
