// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// Reason and message for a container whose end was not observed.
const (
	exitUnknown   = 137
	reasonUnknown = "ContainerStatusUnknown"
)

// View combines the states of a pod in its runtime and its worker, indexed for queries.
type View struct {
	pod     *corev1.Pod
	mem     *Memory
	now     time.Time
	boxes   []Sandbox              // newest first
	byName  map[string][]Container // newest first
	resetAt time.Time              // older instances must be replaced: RestartAllContainers
}

// Look returns the view of a pod.
func Look(pod *corev1.Pod, seen Observed, mem *Memory, now time.Time) *View {
	v := &View{pod: pod, mem: mem, now: now, boxes: slices.Clone(seen.Sandboxes), byName: map[string][]Container{}}
	slices.SortFunc(v.boxes, func(a, b Sandbox) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, c := range seen.Containers {
		if i := mem.instanceRecord(c.ID); c.State == Unknown && i.stopped {
			c.State, c.ExitCode, c.Reason, c.FinishedAt = Exited, exitUnknown, reasonUnknown, i.stopEnd
		}
		v.byName[c.Name] = append(v.byName[c.Name], c)
	}
	for _, list := range v.byName {
		slices.SortFunc(list, func(a, b Container) int {
			return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
		})
	}
	for c := range ordinaryContainers(pod) {
		for _, i := range v.byName[c.Name] {
			if i.State == Exited && i.FinishedAt.After(v.resetAt) && restartsAll(c, i.ExitCode) {
				v.resetAt = i.FinishedAt
			}
		}
	}
	return v
}

// Instances returns the instances of a container, newest first.
func (v *View) Instances(name string) []Container { return v.byName[name] }

// Sandbox returns the sandbox for new containers, or the kubelet's message why there is none.
func (v *View) Sandbox() (box *Sandbox, why string) {
	if len(v.boxes) == 0 {
		return nil, "no pod sandbox exists"
	}
	newest := &v.boxes[0]
	switch {
	case !newest.Ready:
		return nil, "pod sandbox is not ready"
	case v.mem.sandboxRecord(newest.ID).stopped:
		return nil, "pod sandbox is not ready"
	case newest.NoAddress && !v.pod.Spec.HostNetwork:
		return nil, "pod sandbox has no IP address"
	}
	return newest, ""
}

// Started reports whether an instance has started: it is running, and its postStart hook and its startup probe have succeeded.
func (v *View) Started(c *corev1.Container, i *Container) bool {
	if i.State != Running || v.mem.containerRecord(c.Name).starting || v.mem.instanceRecord(i.ID).failed {
		return false
	}
	return c.StartupProbe == nil || v.mem.Probes[i.ID].Startup == Success || v.statusSays(i, func(s *corev1.ContainerStatus) bool {
		return v.mem.Probes[i.ID].Startup == NoResult && s.Started != nil && *s.Started
	})
}

// Ready reports whether a started instance is ready. Before the first result of its probe, the instance keeps its state from before the restart of
// the process.
func (v *View) Ready(c *corev1.Container, i *Container) bool {
	switch result := v.mem.Probes[i.ID].Readiness; {
	case i.State != Running:
		return false
	case c.ReadinessProbe == nil, result == Success:
		return true
	case result == Failure:
		return false
	}
	return v.statusSays(i, func(s *corev1.ContainerStatus) bool { return s.Ready })
}

// statusSays calls ask with the last known status of the instance, if there is one.
func (v *View) statusSays(i *Container, ask func(*corev1.ContainerStatus) bool) bool {
	s := v.Status(i.Name)
	return s != nil && s.State.Running != nil && hasID(s.ContainerID, i.ID) && ask(s)
}

// Status returns the last known status of a container, or nil.
func (v *View) Status(name string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{v.pod.Status.ContainerStatuses, v.pod.Status.InitContainerStatuses, v.pod.Status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// Waiting returns the reason why a container waits, or nil if it is unknown.
func (v *View) Waiting(name string) *corev1.ContainerStateWaiting {
	return v.mem.containerRecord(name).waiting
}

// Restarts reports whether a container restarts after the end of this instance.
func (v *View) Restarts(c *corev1.Container, i *Container) bool {
	switch {
	case i.State == Created, i.State == Unknown:
		return true
	case v.needsReset(i), v.mem.instanceRecord(i.ID).restart:
		return true
	}
	return podstatus.RestartsAfter(v.pod, c, i.ExitCode)
}

// Initialized reports whether a main container was created in the newest sandbox: then all init containers are done, even if their instances are
// gone.
func (v *View) Initialized() bool {
	for i := range v.pod.Spec.Containers {
		if v.activeInstance(v.pod.Spec.Containers[i].Name) != nil {
			return true
		}
	}
	return false
}

// Evicted reports whether the pod must end as failed without a deletion, with the reason.
func (v *View) Evicted() (reason, message string, evicted bool) {
	if e := v.mem.Eviction; e != nil {
		return e.Reason, e.Message, true
	}
	if by, has := podDeadline(v.pod, v.mem); has && !v.now.Before(by) {
		return "DeadlineExceeded", "Pod was active on the node longer than the specified deadline", true
	}
	return "", "", false
}

// needsReset reports whether the instance must be replaced, because another container's exit restarts all.
func (v *View) needsReset(i *Container) bool {
	return !v.resetAt.IsZero() && (i.CreatedAt.Before(v.resetAt) || v.hasOvertaken(i))
}

// hasOvertaken reports whether the instance of a main container was created although the init containers had to run again first. This happens if its
// start was in progress when the other container ended.
func (v *View) hasOvertaken(i *Container) bool {
	if !slices.ContainsFunc(v.pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == i.Name }) {
		return false
	}
	for k := range v.pod.Spec.InitContainers {
		c := &v.pod.Spec.InitContainers[k]
		list := v.byName[c.Name]
		if len(list) == 0 {
			continue
		}
		again, late := &list[0], i.CreatedAt
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			again, late = v.firstAfterReset(list), i.CreatedAt.Add(1) // no container waits for the end of a sidecar
		}
		if again != nil && (again.CreatedAt.Before(v.resetAt) || !again.CreatedAt.Before(late)) {
			return true
		}
	}
	return false
}

// firstAfterReset returns the first instance of a sidecar after the restart of all containers, or the instance from before the restart if there is no
// other. The result is nil if the first instance may have been removed: later instances prove nothing, because a sidecar may restart at any time.
func (v *View) firstAfterReset(list []Container) *Container {
	for k := range list {
		switch {
		case !list[k].CreatedAt.Before(v.resetAt):
		case k == 0:
			return &list[0]
		case list[k-1].Attempt == list[k].Attempt+1:
			return &list[k-1]
		default:
			return nil
		}
	}
	return nil
}

// Has returns the last resources that were applied to an instance, or nil if they are unknown.
func (v *View) Has(i *Container) *corev1.ResourceRequirements {
	if r := v.mem.instanceRecord(i.ID).resized; r != nil {
		return r
	}
	return i.Created
}

// ResizeError returns the error of the last resize of an instance, or "".
func (v *View) ResizeError(i *Container) string { return v.mem.instanceRecord(i.ID).resize.message }

// AllRestart reports whether a container has ended in a way that restarts all containers, and this restart is in
// progress.
func (v *View) AllRestart() bool {
	if v.resetAt.IsZero() {
		return false
	}
	for c := range ordinaryContainers(v.pod) {
		if list := v.byName[c.Name]; len(list) > 0 && !v.needsReset(&list[0]) {
			return false
		}
	}
	return true
}

// lastInstance returns the newest instance, or nil. An instance that the runtime has lost counts as exited if it was running according to the status.
func (v *View) lastInstance(name string) *Container {
	if list := v.byName[name]; len(list) > 0 {
		return &list[0]
	}
	s := v.Status(name)
	if s == nil {
		return nil
	}
	lost := &Container{Name: name, State: Exited, ExitCode: exitUnknown, Reason: reasonUnknown, Attempt: uint32(max(0, s.RestartCount))}
	end := s.State.Terminated
	if end == nil && s.State.Running == nil {
		end = s.LastTerminationState.Terminated
		if end == nil {
			return nil // the container never ran
		}
	}
	if end != nil {
		lost.ExitCode, lost.Reason, lost.FinishedAt = end.ExitCode, end.Reason, end.FinishedAt.Time
	}
	return lost
}

// activeInstance returns the newest instance in the newest sandbox, or nil. It ignores instances of other sandboxes, and instances from before a
// restart of all containers.
func (v *View) activeInstance(name string) *Container {
	list := v.byName[name]
	if len(list) == 0 || len(v.boxes) == 0 || list[0].SandboxID != v.boxes[0].ID || v.needsReset(&list[0]) {
		return nil
	}
	return &list[0]
}

// Hash returns the hash of a container for the label of its instances. An instance with another hash is outdated.
func Hash(c *corev1.Container) string {
	b, err := json.Marshal([]string{c.Name, c.Image})
	if err != nil {
		panic(fmt.Sprintf("two strings do not marshal: %v", err))
	}
	h := fnv.New32a()
	h.Write(b)
	return fmt.Sprintf("%x", h.Sum32())
}
