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

// podAdmission decides which features of a pod the backend supports, and whether the node has room for the pod. It applies only to a
// provider that declares its capabilities.
type podAdmission struct {
	*podCore
	declared    *capability.Declaration // nil: the provider declares nothing and receives every pod
	accepts     bool                    // a pod may run without a feature that it requests
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

// lacksFeature reports whether the backend is known not to have a feature.
func (a *podAdmission) lacksFeature(feature capability.Feature) bool {
	return a.declared != nil && !a.declared.Has(feature)
}

// admitPod reserves resources for a pod that has not been at the backend, as a kubelet does, or returns the failure if the node lacks them.
// This can happen if a client bound the pod without the scheduler, or if the scheduler had outdated data. It checks the capacity only for a
// provider that declares its capabilities.
func (a *podAdmission) admitPod(ctx context.Context, key string, api *corev1.Pod) *lifecycle.PodFailure {
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
	if r := a.allocations.Admit(api, allocatable, func(reserved []types.UID) []types.UID { return a.podsWithoutNeed(ctx, reserved) }); r != nil {
		return &lifecycle.PodFailure{Reason: r.Reason, Message: r.Message}
	}
	a.states.sync(key, api.UID, func(st syncWriter) { st.admitted = true })
	return nil
}

// reserveRoom records the resources of a pod that reached the backend in another way or now requests other
// resources.
func (a *podAdmission) reserveRoom(api *corev1.Pod, sent lifecycle.Sent) {
	if a.declared != nil && lifecycle.Started(api, sent) && !lifecycle.Terminal(&api.Status) {
		a.allocations.Reserve(api)
	}
}

// reserveAll records the resources of the pods that have run, when this process begins to act for the node, because new pods must not be
// admitted before them.
func (a *podAdmission) reserveAll(ctx context.Context) {
	for _, pod := range a.all(ctx) {
		a.reserveRoom(pod, lifecycle.Sent{})
	}
}

// podsWithoutNeed returns the pods that no longer need their reservation: ended pods, and deleted pods without a state. A pod that was just
// admitted has a state.
func (a *podAdmission) podsWithoutNeed(ctx context.Context, reserved []types.UID) []types.UID {
	needs := a.states.roomHolders()
	for _, pod := range a.all(ctx) {
		holds, remembered := needs[pod.UID]
		needs[pod.UID] = (holds || !remembered) && !lifecycle.Terminal(&pod.Status)
	}
	return slices.DeleteFunc(reserved, func(uid types.UID) bool { return needs[uid] })
}

// checkSupported returns the features of the pod that the backend lacks, or "".
func (a *podAdmission) checkSupported(api *corev1.Pod) string {
	if a.declared == nil {
		return ""
	}
	pod := api
	if len(api.Spec.EphemeralContainers) > 0 && a.lacksFeature(capability.EphemeralContainers) {
		pod = api.DeepCopy() // unsupported ephemeral containers do not count: their own statuses show it
		pod.Spec.EphemeralContainers = nil
	}
	unsupported := a.declared.Check(pod)
	if len(unsupported) == 0 {
		return ""
	}
	return capability.Message(unsupported)
}

// withoutUnsupported removes parts from a private copy of a pod: containers that the backend cannot add to the
// running pod, and settings that are not enforced.
func (a *podAdmission) withoutUnsupported(pod *corev1.Pod) {
	if a.accepts {
		a.declared.LeaveOut(pod)
	}
	if a.lacksFeature(capability.EphemeralContainers) {
		pod.Spec.EphemeralContainers = nil
	}
}

// forProvider returns a pod as the provider receives it: the pod itself, or a copy without the parts that are left out.
func (a *podAdmission) forProvider(api *corev1.Pod) *corev1.Pod {
	added := len(api.Spec.EphemeralContainers) > 0 && a.lacksFeature(capability.EphemeralContainers)
	if !added && (!a.accepts || len(a.declared.Unenforced(api)) == 0) {
		return api
	}
	pod := api.DeepCopy()
	a.withoutUnsupported(pod)
	return pod
}

// unenforcedSettings returns the requested settings that the pod runs without, or "".
func (a *podAdmission) unenforcedSettings(api *corev1.Pod) string {
	if a.declared == nil {
		return ""
	}
	if unenforced := a.declared.Unenforced(api); len(unenforced) > 0 {
		return capability.UnenforcedMessage(unenforced)
	}
	return ""
}

// fixedSizes reports whether the backend is known not to support resizing running pods.
func (a *podAdmission) fixedSizes() bool {
	return a.lacksFeature(capability.InPlaceResize)
}

// recordSizes records the resources of a pod that the backend already had. If the pod waits for a resize, it was created with other,
// unknown resources than its spec shows.
func (a *podAdmission) recordSizes(key string, api *corev1.Pod, st podState) {
	if !a.fixedSizes() || st.sized != nil {
		return
	}
	if lifecycle.Started(api, st.sent) && !resizePending(api) {
		a.states.sync(key, api.UID, func(s syncWriter) { s.sized = sizesOf(api) })
	}
}
