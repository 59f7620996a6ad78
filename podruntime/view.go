// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"cmp"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// view is the worker's view of its pod at the runtime. A dirty part is read again before its next use. A failed list does not change the view.
type view struct {
	observed   plan.Observed
	sandboxes  map[string]*sandboxView
	containers map[string]*containerView
}

type sandboxView struct {
	dirty bool
	since uint64 // the round of lists in which the pod was found
	seen  plan.Sandbox
	meta  criconfig.Meta
}

type containerView struct {
	dirty bool
	since uint64
	// sandbox is the ID of the sandbox, which the status of a container lacks.
	sandbox string
	seen    plan.Container
	meta    criconfig.Meta
	log     string // path of its log
}

func newView() view {
	return view{sandboxes: map[string]*sandboxView{}, containers: map[string]*containerView{}}
}

func (v *view) isEmpty() bool { return len(v.sandboxes) == 0 && len(v.containers) == 0 }

// meetSandbox records a sandbox, which must be read.
func (v *view) meetSandbox(id string, round uint64) {
	if s := v.sandboxes[id]; s != nil {
		s.dirty = true
		return
	}
	v.sandboxes[id] = &sandboxView{dirty: true, since: round}
}

// meetContainer records a container, which must be read.
func (v *view) meetContainer(id, sandbox string, round uint64) {
	if c := v.containers[id]; c != nil {
		c.dirty = true
		return
	}
	v.containers[id] = &containerView{dirty: true, since: round, sandbox: sandbox}
}

// markDirty records that a known container or sandbox may have changed.
func (v *view) markDirty(id string) {
	if s := v.sandboxes[id]; s != nil {
		s.dirty = true
	}
	if c := v.containers[id]; c != nil {
		c.dirty = true
	}
}

// recordOutcome records the result of an action so that its object is read before the next decision.
func (v *view) recordOutcome(a plan.Action, o plan.Outcome, round uint64) {
	switch a.Kind {
	case plan.RunSandbox:
		if o.ID != "" {
			v.meetSandbox(o.ID, round)
		}
	case plan.Start:
		if o.ID != "" {
			v.meetContainer(o.ID, a.SandboxID, round)
		}
	case plan.RemoveContainer:
		if o.Reason == "" {
			delete(v.containers, a.ID)
		}
	case plan.RemoveSandbox:
		if o.Reason == "" {
			delete(v.sandboxes, a.ID)
		}
	case plan.StopSandbox:
		v.markDirty(a.ID)
		for _, c := range v.containers { // running containers of the sandbox were killed
			c.dirty = c.dirty || c.sandbox == a.ID && c.seen.State == plan.Running
		}
	default:
		v.markDirty(a.ID)
	}
}

// mergeList merges a complete list of the pod. A known container or sandbox that is older than the list and missing in it is gone. mergeList returns
// the gone containers.
func (v *view) mergeList(l *listed) (lost []string) {
	for id, s := range v.sandboxes {
		if _, has := l.sandboxes[id]; !has && s.since < l.round {
			delete(v.sandboxes, id)
		}
	}
	for id, c := range v.containers {
		if _, has := l.containers[id]; !has && c.since < l.round {
			delete(v.containers, id)
			lost = append(lost, id)
		}
	}
	for id, state := range l.sandboxes {
		if s := v.sandboxes[id]; s == nil || s.seen.Ready != (state == runtimeapi.PodSandboxState_SANDBOX_READY) {
			v.meetSandbox(id, l.round)
		}
	}
	for id, now := range l.containers {
		if c := v.containers[id]; c == nil || c.seen.State != stateOf(now.state) {
			v.meetContainer(id, now.sandbox, l.round)
		}
	}
	return lost
}

// assembleInput makes the input of plan and podstatus, with the oldest objects first.
func (v *view) assembleInput() {
	v.observed.Sandboxes = v.observed.Sandboxes[:0]
	for _, s := range v.sandboxes {
		v.observed.Sandboxes = append(v.observed.Sandboxes, s.seen)
	}
	slices.SortFunc(v.observed.Sandboxes, func(a, b plan.Sandbox) int {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	v.observed.Containers = v.observed.Containers[:0]
	for _, c := range v.containers {
		v.observed.Containers = append(v.observed.Containers, c.seen)
	}
	slices.SortFunc(v.observed.Containers, func(a, b plan.Container) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Attempt, b.Attempt), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
}

// newestSandbox returns the newest sandbox, or nil if there is none.
func (v *view) newestSandbox() *plan.Sandbox {
	if n := len(v.observed.Sandboxes); n > 0 {
		return &v.observed.Sandboxes[n-1]
	}
	return nil
}

// instance has the data of a container instance for requests.
type instance struct {
	id      string
	attempt uint32
	running bool
	state   plan.State
	log     string
	sandbox string
}

// containerInstances returns the instances of each container, newest first.
func (v *view) containerInstances() map[string][]instance {
	all := map[string][]instance{}
	for _, c := range slices.Backward(v.observed.Containers) {
		all[c.Name] = append(all[c.Name], instance{
			id: c.ID, attempt: c.Attempt, running: c.State == plan.Running, state: c.State, sandbox: c.SandboxID, log: v.containers[c.ID].log,
		})
	}
	return all
}
