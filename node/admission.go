// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/internal/admission"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// podAdmission decides what of a pod the backend can do, and whether the node has room for it. Only a provider that declares what it
// has is taken at its word.
type podAdmission struct {
	*podCore
	declared    *capability.Declaration // nil: the provider declares nothing and gets every pod
	accepts     bool                    // a pod may run without something that it asks for
	allocations admission.Allocations
	allocatable func() corev1.ResourceList // nil: unknown
}

func newPodAdmission(core *podCore, cfg *PodControllerConfig) *podAdmission {
	a := &podAdmission{podCore: core, allocatable: cfg.NodeAllocatable}
	if declarer, ok := cfg.Provider.(capability.Declarer); ok {
		declared := declarer.Capabilities()
		if cfg.AcceptUnenforced != nil {
			declared = declared.Accept(cfg.AcceptUnenforced...)
		}
		a.declared, a.accepts = &declared, len(declared.Accepted()) > 0
	}
	return a
}

// lacks reports whether the backend is known not to have a feature.
func (a *podAdmission) lacks(feature capability.Feature) bool {
	return a.declared != nil && !a.declared.Has(feature)
}

// admit reserves room for a pod that has not been at the backend, as a
// kubelet does, or returns why the node has none. Somebody bound it past the scheduler, or the scheduler
// knew less. Only a provider that declares what it has is taken at its word about capacity.
func (a *podAdmission) admit(ctx context.Context, key string, api *corev1.Pod) *lifecycle.PodFailure {
	if a.declared == nil {
		return nil
	}
	if st := a.states.get(key); st.admitted || lifecycle.Started(api, st.sent) {
		a.allocations.Reserve(api)
		return nil
	}
	var allocatable corev1.ResourceList
	if a.allocatable != nil {
		allocatable = a.allocatable()
	}
	if r := a.allocations.Admit(api, allocatable, func(reserved []types.UID) []types.UID { return a.ended(ctx, reserved) }); r != nil {
		return &lifecycle.PodFailure{Reason: r.Reason, Message: r.Message}
	}
	a.states.sync(key, api.UID, func(st syncWriter) { st.admitted = true })
	return nil
}

// reserve notes what a pod takes that has come to the backend some other way, or asks for something else now.
func (a *podAdmission) reserve(api *corev1.Pod, sent lifecycle.Sent) {
	if a.declared != nil && lifecycle.Started(api, sent) && !lifecycle.Terminal(&api.Status) {
		a.allocations.Reserve(api)
	}
}

// reserveAll notes what the pods take that have run, when this process begins to act for the node: one that is new must not be
// admitted before them.
func (a *podAdmission) reserveAll(ctx context.Context) {
	for _, pod := range a.all(ctx) {
		a.reserve(pod, lifecycle.Sent{})
	}
}

// ended returns those of the pods with a reservation that need no room any more: they have ended, or are gone and nothing is remembered
// of them. One that was admitted a moment ago is remembered.
func (a *podAdmission) ended(ctx context.Context, reserved []types.UID) []types.UID {
	needs := a.states.holding()
	for _, pod := range a.all(ctx) {
		holds, remembered := needs[pod.UID]
		needs[pod.UID] = (holds || !remembered) && !lifecycle.Terminal(&pod.Status)
	}
	return slices.DeleteFunc(reserved, func(uid types.UID) bool { return needs[uid] })
}

// checkSupported returns what the pod asks for and the backend does not have, "" if it has all.
func (a *podAdmission) checkSupported(api *corev1.Pod) string {
	if a.declared == nil {
		return ""
	}
	pod := api
	if len(api.Spec.EphemeralContainers) > 0 && a.lacks(capability.EphemeralContainers) {
		pod = api.DeepCopy() // they say so in their own statuses
		pod.Spec.EphemeralContainers = nil
	}
	unsupported := a.declared.Check(pod)
	if len(unsupported) == 0 {
		return ""
	}
	return capability.Message(unsupported)
}

// withoutUnsupported takes out of a private copy of a pod what was added to it while it runs and the backend cannot do, and what the pod runs
// without.
func (a *podAdmission) withoutUnsupported(pod *corev1.Pod) {
	if a.accepts {
		a.declared.LeaveOut(pod)
	}
	if a.lacks(capability.EphemeralContainers) {
		pod.Spec.EphemeralContainers = nil
	}
}

// forProvider returns a pod of the API server as the provider is given it: the pod itself, or a copy if something of it is left out.
func (a *podAdmission) forProvider(api *corev1.Pod) *corev1.Pod {
	added := len(api.Spec.EphemeralContainers) > 0 && a.lacks(capability.EphemeralContainers)
	if !added && (!a.accepts || len(a.declared.Unenforced(api)) == 0) {
		return api
	}
	pod := api.DeepCopy()
	a.withoutUnsupported(pod)
	return pod
}

// unenforced returns what the pod asks for and runs without, "" if it gets all.
func (a *podAdmission) unenforced(api *corev1.Pod) string {
	if a.declared == nil {
		return ""
	}
	if unenforced := a.declared.Unenforced(api); len(unenforced) > 0 {
		return capability.UnenforcedMessage(unenforced)
	}
	return ""
}

// fixedSizes reports whether the backend is known not to change the resources of pods that run.
func (a *podAdmission) fixedSizes() bool {
	return a.lacks(capability.InPlaceResize)
}

// size notes what a pod was made with that the backend had already. One that waits for a resize has other resources
// than its spec says, and nobody knows which.
func (a *podAdmission) size(key string, api *corev1.Pod, st podState) {
	if !a.fixedSizes() || st.sized != nil || !lifecycle.Started(api, st.sent) || resizePending(api) {
		return
	}
	a.states.sync(key, api.UID, func(s syncWriter) { s.sized = sizesOf(api) })
}
