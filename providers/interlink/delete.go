// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// afterAbsent is how long a delete waits that was answered with 404, for answers about states.
const afterAbsent = 2 * time.Second

// DeletePod asks for the stop of a pod. It has stopped when the server says so, or does not know it any more.
func (p *provider) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.remove(ctx, pod); err != nil {
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

func (p *provider) remove(ctx context.Context, pod *corev1.Pod) error {
	if p.tracker.get(pod.UID) == nil {
		if err := p.client.forget(ctx, string(pod.UID)); err != nil {
			return err
		}
		said, err := p.look(ctx, pod)
		if err != nil {
			return err
		}
		if said == nil {
			if err := errors.Join(p.doubts.check(pod.UID), p.early(pod)); err != nil {
				return err
			}
			p.tracker.settled(pod.UID)
			return errdefs.NotFoundf("the interLink API server has no pod with the UID %s", pod.UID)
		}
		p.doubts.clear(pod.UID)
		p.tracker.add(pod, *said, true)
	}
	err := p.client.remove(ctx, deletion(pod))
	if err != nil && !absent(err) {
		return err
	}
	p.tracker.stop(pod.UID, err == nil)
	if err != nil { // a proxy says it too: whether the pod is gone, the states say, and until then the stop is asked for again
		return errdefs.RetryAfter(fmt.Errorf("the states of pods have to say whether it is gone: %w", errText{err}), afterAbsent)
	}
	return nil
}
