// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	succeeded = `{"status":{"phase":"Succeeded"}}`
	runs      = `{"status":{"phase":"Running"}}`
)

func held(pod *corev1.Pod)     { pod.Finalizers = []string{"example.com/hold"} }
func released(pod *corev1.Pod) { pod.Finalizers = nil }

func policy(p corev1.RestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.RestartPolicy = p }
}

type memapiCase struct {
	name  string
	steps func(p *pods)
}

func memapiCases() []memapiCase {
	return []memapiCase{
		{"a pod is deleted and then removed by its node", func(p *pods) { p.begin(); p.patch(runs); p.remove(-1); p.remove(0, string(p.uid)) }},
		{"a grace period becomes shorter only", func(p *pods) {
			p.begin()
			p.remove(9)
			p.remove(4)
			p.remove(6)
			p.remove(-1)
			p.remove(0)
		}},
		{"a running pod is deleted by force", func(p *pods) { p.begin(); p.patch(runs); p.remove(0) }},
		{"a pod that has ended is deleted", func(p *pods) { p.begin(); p.patch(succeeded); p.remove(-1) }},
		{"a pod ends while it is deleted", func(p *pods) {
			p.begin()
			p.remove(-1)
			p.patch(succeeded)
			p.remove(-1)
			p.remove(30)
			p.remove(8)
			p.remove(0)
		}},
		{"a pod that is not bound is deleted", func(p *pods) {
			p.begin(func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Spec.SchedulerName = "", "nobody" })
			p.remove(-1)
		}},
		{"a pod has a grace period of its own", func(p *pods) {
			seconds := int64(7)
			p.begin(func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds })
			p.remove(-1)
		}},
		{"a removal is for another pod", func(p *pods) { p.begin(); p.remove(0, "other"); p.remove(0) }},
		{"a patch is for another pod", func(p *pods) {
			p.begin()
			p.patch(`{"metadata":{"uid":"other"},"status":{"phase":"Running"}}`)
			p.patch(runs)
		}},
		{"a finalizer outlives a forced deletion", func(p *pods) {
			p.begin(held)
			p.remove(0)
			p.remove(0)
			p.remove(-1)
			p.patch(runs)
			p.edit(released)
			p.patch(runs)
		}},
		{"a finalizer goes before the pod", func(p *pods) { p.begin(held); p.remove(5); p.edit(released); p.remove(0) }},
		{"a finalizer goes after the pod", func(p *pods) { p.begin(held); p.remove(5); p.patch(succeeded); p.remove(0); p.edit(released) }},
		{"a pod is gone", func(p *pods) { p.begin(); p.remove(0); p.patch(runs); p.remove(0) }},
		{"the generation counts changes of the spec", func(p *pods) {
			p.begin()
			p.edit(func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "2"} })
			p.edit(func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "j" })
			p.patch(runs)
			p.remove(9)
			p.remove(3)
		}},
		{"a patch changes nothing", func(p *pods) { p.begin(); p.patch(runs); p.patch(runs) }},
		{"a patch changes metadata", func(p *pods) {
			p.begin()
			p.patch(`{"metadata":{"labels":{"a":null,"b":"1"}}}`)
			p.patch(`{"metadata":{"generation":9},"spec":{"nodeName":"x"}}`)
		}},
		{"addresses are in step", func(p *pods) {
			p.begin()
			p.patch(`{"status":{"podIP":"10.0.0.1"}}`)
			p.patch(`{"status":{"podIP":"10.0.0.2"}}`)
			p.patch(`{"status":{"podIP":"10.0.0.3","podIPs":[{"$patch":"replace"},{"ip":"10.0.0.3"},{"ip":"fd00::1"}]}}`)
			p.patch(`{"status":{"podIPs":[{"$patch":"replace"},{"ip":"10.0.0.4"}]}}`)
			p.patch(`{"status":{"podIP":null}}`)
			p.patch(`{"status":{"podIP":null,"podIPs":null}}`)
			p.patch(`{"status":{"hostIP":"10.1.0.1","hostIPs":[{"ip":"10.1.0.2"}]}}`)
		}},
		{"conditions are merged by type", func(p *pods) {
			p.begin()
			p.patch(`{"status":{"conditions":[{"type":"A","status":"True"}]}}`)
			p.patch(`{"status":{"conditions":[{"type":"B","status":"True"},{"type":"A","status":"False"}]}}`)
			p.patch(`{"status":{"conditions":[{"type":"A","$patch":"delete"}]}}`)
		}},
		{"an ended container never runs again", func(p *pods) { p.begin(policy(corev1.RestartPolicyNever)); p.endAndRun(1) }},
		{"a failed container runs again", func(p *pods) { p.begin(policy(corev1.RestartPolicyOnFailure)); p.endAndRun(1) }},
		{"a finished container never runs again", func(p *pods) { p.begin(policy(corev1.RestartPolicyOnFailure)); p.endAndRun(0) }},
		{"any container runs again", func(p *pods) { p.begin(); p.endAndRun(0) }},
		{"lists wait for what they do not know", func(p *pods) {
			p.begin()
			for _, version := range []string{"", "0", p.since, "1000000000"} {
				list, err := p.List(p.Context(), metav1.ListOptions{ResourceVersion: version, FieldSelector: "metadata.name=" + p.name + ",spec.nodeName=" + p.node})
				n := -1
				if err == nil {
					n = len(list.Items)
				}
				tooLarge := apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
				p.note(fmt.Sprintf("%d pods, too large: %v", n, tooLarge), err)
			}
		}},
	}
}

// endAndRun reports the container as ended, and then as running again.
func (p *pods) endAndRun(exitCode int) {
	const format = `{"status":{"phase":"Running","containerStatuses":[{"name":"c","image":"i","imageID":"","ready":false,"restartCount":0,"state":%s}]}}`
	p.patch(fmt.Sprintf(format, fmt.Sprintf(`{"running":null,"terminated":{"exitCode":%d}}`, exitCode)))
	p.patch(fmt.Sprintf(format, `{"terminated":null,"running":{}}`))
}
