// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

const completed = "PodCompleted"

// setConditions sets the conditions that the pod controller does not derive, or derives with other messages than a kubelet.
func (f *facts) setConditions(s *corev1.PodStatus) {
	set := func(t corev1.PodConditionType, isTrue bool, reason, message string) {
		status := corev1.ConditionFalse
		if isTrue {
			status = corev1.ConditionTrue
		}
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: status, Reason: reason, Message: message})
	}
	if _, why := f.view.Sandbox(); why != "" {
		set(corev1.PodReadyToStartContainers, false, "PodSandboxNotReady", why)
	} else {
		set(corev1.PodReadyToStartContainers, true, "", "")
	}
	reason, message := f.initProgress(s)
	set(corev1.PodInitialized, reason == "" || reason == completed, reason, message)
	reason, message = f.containersReady(s)
	set(corev1.ContainersReady, reason == "", reason, message)
	f.resizeConditions(s)
	f.restartCondition(s)
	if e := f.mem.Eviction; e != nil && e.Disruption {
		set(corev1.DisruptionTarget, true, corev1.PodReasonTerminationByKubelet, e.Message)
		return
	}
	for _, c := range f.pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Reason == corev1.PodReasonTerminationByKubelet { // before a restart
			set(c.Type, c.Status == corev1.ConditionTrue, c.Reason, c.Message)
		}
	}
}

func (f *facts) initProgress(s *corev1.PodStatus) (reason, message string) {
	if s.Phase == corev1.PodSucceeded {
		return completed, ""
	}
	for i := range s.ContainerStatuses {
		if s.ContainerStatuses[i].State.Waiting == nil {
			return "", ""
		}
	}
	var missing []string
	for i := range f.pod.Spec.InitContainers {
		st := &s.InitContainerStatuses[i]
		done := st.Ready
		if plan.Sidecar(&f.pod.Spec.InitContainers[i]) {
			done = st.Started != nil && *st.Started
		}
		if !done {
			missing = append(missing, st.Name)
		}
	}
	if len(missing) == 0 || f.wasTrue(corev1.PodInitialized) {
		return "", ""
	}
	return "ContainersNotInitialized", fmt.Sprintf("containers with incomplete status: %s", missing)
}

// wasTrue reports whether the condition was True in the last known status.
func (f *facts) wasTrue(t corev1.PodConditionType) bool {
	for _, c := range f.pod.Status.Conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (f *facts) containersReady(s *corev1.PodStatus) (reason, message string) {
	switch s.Phase {
	case corev1.PodSucceeded:
		return completed, ""
	case corev1.PodFailed:
		return "PodFailed", ""
	}
	var unready []string
	for i := range f.pod.Spec.InitContainers {
		if st := &s.InitContainerStatuses[i]; plan.Sidecar(&f.pod.Spec.InitContainers[i]) && !st.Ready {
			unready = append(unready, st.Name)
		}
	}
	for i := range s.ContainerStatuses {
		if st := &s.ContainerStatuses[i]; !st.Ready {
			unready = append(unready, st.Name)
		}
	}
	if len(unready) == 0 {
		return "", ""
	}
	return "ContainersNotReady", fmt.Sprintf("containers with unready status: %s", unready)
}

// resizeConditions reports new resources that containers do not have yet.
func (f *facts) resizeConditions(s *corev1.PodStatus) {
	if isTerminal(s.Phase) {
		return
	}
	if p := f.mem.ResizePending; p != nil {
		s.Conditions = append(s.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: p.Reason, Message: p.Message,
		})
	} else if failures, resizing := f.resizeProgress(); resizing {
		c := corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue}
		if len(failures) > 0 {
			c.Reason, c.Message = corev1.PodReasonError, strings.Join(failures, ", ")
		}
		s.Conditions = append(s.Conditions, c)
	}
}

// resizeProgress reports whether a running container lacks the resources of the spec, and the failures.
func (f *facts) resizeProgress() (failures []string, resizing bool) {
	for _, list := range [][]corev1.Container{f.pod.Spec.InitContainers, f.pod.Spec.Containers} {
		for i := range list {
			instances := f.view.Instances(list[i].Name)
			if len(instances) == 0 || instances[0].State != plan.Running {
				continue
			}
			has := f.view.Has(&instances[0])
			if has == nil || len(plan.Changed(has, &list[i].Resources)) == 0 {
				continue
			}
			resizing = true
			if e := f.view.ResizeError(&instances[0]); e != "" {
				failures = append(failures, e)
			}
		}
	}
	return failures, resizing
}

// restartCondition reports the restart of all containers after the end of one, if the pod has such a rule.
func (f *facts) restartCondition(s *corev1.PodStatus) {
	if !plan.MayRestartAll(f.pod) {
		return
	}
	c := corev1.PodCondition{Type: corev1.AllContainersRestarting, Status: corev1.ConditionFalse}
	switch {
	case s.Phase == corev1.PodSucceeded:
		c.Reason = completed
	case s.Phase == corev1.PodFailed:
		c.Reason = "PodFailed"
	case f.view.AllRestart():
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "RestartAllContainersStarted", "container exited with restart policy rule"
	}
	s.Conditions = append(s.Conditions, c)
}
