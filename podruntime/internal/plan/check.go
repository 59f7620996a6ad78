// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// reasonPostStart is the reason of a container that waits after its postStart hook failed.
const reasonPostStart = "PostStartHookError"

// checkInstance kills a running instance if it must end.
func (s *starter) checkInstance(c *corev1.Container, inst *Container) {
	if i := s.mem.instanceRecord(inst.ID); i.kill {
		s.killInstance(inst, kill{}, true)
		return
	}
	if k, doomed := s.mustEnd(c, inst); doomed {
		s.killInstance(inst, k, true)
		return
	}
	s.resizeInstance(c, inst)
}

// mustEnd reports whether an instance must not run any longer, and why.
func (s *starter) mustEnd(c *corev1.Container, inst *Container) (kill, bool) {
	isInit := slices.ContainsFunc(s.pod.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
	if s.mem.instanceRecord(inst.ID).failed {
		return kill{grace: podGrace(s.pod), message: "FailedPostStartHook"}, true
	}
	if isInit && !Sidecar(c) {
		return kill{}, false
	}
	what, again := "Container", ", will be restarted"
	if isInit {
		what, again = "Init container", ""
	}
	if inst.Hash != "" && inst.Hash != Hash(c) {
		return kill{grace: podGrace(s.pod), message: fmt.Sprintf("%s %s definition changed%s", what, c.Name, again), restart: true}, true
	}
	restart := restartsKilled(s.pod, c)
	if !restart {
		again = ""
	}
	switch probe := s.mem.Probes[inst.ID]; {
	case c.StartupProbe != nil && probe.Startup == Failure:
		return kill{grace: probeGrace(s.pod, c.StartupProbe), message: fmt.Sprintf("%s %s failed startup probe%s", what, c.Name, again), restart: restart}, true
	case c.LivenessProbe != nil && probe.Liveness == Failure:
		return kill{grace: probeGrace(s.pod, c.LivenessProbe), message: fmt.Sprintf("%s %s failed liveness probe%s", what, c.Name, again), restart: restart}, true
	}
	return kill{}, false
}

// resizeInstance applies the resources of the spec to an instance: in place, or with a restart if the resize policy of the container requires it.
func (s *starter) resizeInstance(c *corev1.Container, inst *Container) {
	has := s.Has(inst)
	if has == nil || s.mem.ResizePending != nil || s.mem.containerRecord(c.Name).starting {
		return
	}
	changed := Changed(has, &c.Resources)
	if len(changed) == 0 {
		return
	}
	for _, policy := range c.ResizePolicy {
		if policy.RestartPolicy == corev1.RestartContainer && slices.Contains(changed, policy.ResourceName) {
			s.killInstance(inst, kill{grace: podGrace(s.pod), message: fmt.Sprintf("Container %s resize requires restart", c.Name), restart: true}, true)
			return
		}
	}
	if s.mem.instanceRecord(inst.ID).resize.isDue(s.planner) {
		s.addAction(Action{Kind: Resize, Container: c.Name, ID: inst.ID, Resources: c.Resources.DeepCopy()})
	}
}

// Changed returns the names of the CPU and memory resources that differ.
func Changed(a, b *corev1.ResourceRequirements) (changed []corev1.ResourceName) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if !sameQuantity(a.Limits, b.Limits, name) || !sameQuantity(a.Requests, b.Requests, name) {
			changed = append(changed, name)
		}
	}
	return changed
}

func sameQuantity(a, b corev1.ResourceList, name corev1.ResourceName) bool {
	var x, y resource.Quantity
	x, y = a[name], b[name]
	return x.Cmp(y) == 0
}
