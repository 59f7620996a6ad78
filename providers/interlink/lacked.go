// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// askAgain asks the server for pods that answers lacked, before anybody says that they are not there: a server that has just started, or a
// plugin whose batch system answers late, may have a pod that it did not tell of.
func (p *provider) askAgain(ctx context.Context, pods []*corev1.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	said, err := p.tracker.ask(ctx, pods, nil, len(pods))
	if err != nil {
		return err
	}
	p.tracker.adoptAll(pods, said)
	return nil
}

// adoptAll begins with the pods that the server has after all.
func (t *tracker) adoptAll(pods []*corev1.Pod, said answers) {
	for _, pod := range pods {
		if s, has := said.has[pod.UID]; has {
			t.adopt(pod, s)
		}
	}
}

// lacks takes a pod of the cluster down that an answer lacked.
func (t *tracker) lacks(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lacked[pod.UID] = pod.DeepCopy()
}

// lackedPods are those that answers lacked, and that are still at home.
func (t *tracker) lackedPods() (pods []*corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid, pod := range t.lacked {
		if t.atHome(pod) {
			pods = append(pods, pod)
		} else {
			delete(t.lacked, uid)
		}
	}
	return pods
}

// settled is when it was said of a pod that the server does not have it, as two answers lacked it.
func (t *tracker) settled(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.lacked, uid)
}

// atHome reports whether the cluster still has the pod.
func (p *provider) atHome(pod *corev1.Pod) bool {
	if p.in.Pods == nil {
		return true
	}
	have, err := p.in.Pods.Pods(pod.Namespace).Get(pod.Name)
	return err == nil && have.UID == pod.UID
}
