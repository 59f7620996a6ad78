// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// unmade is the error of a create that certainly had no effect, so the caller may try again. A virtual node treats other failures as
// doubtful.
type unmade struct{ error }

// createTimeout bounds a create of the provider. It must be shorter than the time in which a virtual node tolerates answers without a
// new pod.
const createTimeout = 100 * time.Second

// create asks the provider to start a pod. An accepted pod is not started again.
func (p *pods) create(ctx context.Context, in wire.Retrieved) (wire.Created, error) {
	r, err := newRecord(in)
	if err != nil {
		return wire.Created{}, err
	}
	uid := r.Pod.UID
	answer := wire.Created{PodUID: string(uid), JobID: p.job(uid)}
	unlock, err := p.lock(ctx, uid)
	if err != nil {
		return answer, err
	}
	defer unlock()
	if k := p.get(uid); k != nil {
		if k.Deleted != nil {
			return answer, unmade{fmt.Errorf("pod %s/%s with the UID %s was deleted", r.Pod.Namespace, r.Pod.Name, uid)}
		}
		return answer, nil
	}
	if err := p.check(r.Pod); err != nil {
		return answer, err
	}
	k := &pod{record: r}
	if err := p.reserve(k); err != nil {
		return answer, err
	}
	if err := p.store.write(r); err != nil {
		return answer, errors.Join(err, p.forget(k))
	}
	p.objects.add(&r, p.given(r.Pod))
	// A client that gives up must not cancel the create.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	if err := p.provider.CreatePod(bounded, p.given(r.Pod)); err != nil {
		return answer, errors.Join(fmt.Errorf("provider %s: %w", p.runner, err), p.undo(k))
	}
	r.Accepted = true
	p.mu.Lock()
	p.all[uid].Accepted, p.all[uid].since = true, time.Now()
	p.mu.Unlock()
	return answer, p.store.write(r)
}

// check refuses pods that the provider cannot run.
func (p *pods) check(made *corev1.Pod) error {
	if d, ok := p.provider.(capability.Declarer); ok {
		if lacks := d.Capabilities().Check(made); len(lacks) > 0 {
			return errdefs.InvalidInputf("provider %s: %s", p.runner, capability.Message(lacks))
		}
		if without := d.Capabilities().Unenforced(made); len(without) > 0 {
			log.G(p.ctx).WithField("pod", made.Namespace+"/"+made.Name).Warn(capability.UnenforcedMessage(without))
		}
	}
	return nil
}

// given returns a private copy of a pod for the provider.
func (p *pods) given(made *corev1.Pod) *corev1.Pod {
	pod := made.DeepCopy()
	if d, ok := p.provider.(capability.Declarer); ok {
		d.Capabilities().LeaveOut(pod)
	}
	return pod
}

// reserve adds a pod to the pods of the plugin. It refuses the pod while another pod has the same name, even if
// both creates come at once.
func (p *pods) reserve(k *pod) error {
	made := k.Pod
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, k := range p.all {
		if k.Pod.Namespace == made.Namespace && k.Pod.Name == made.Name && uid != made.UID && k.gone.IsZero() {
			return unmade{fmt.Errorf("the pod %s/%s with the UID %s is still here", made.Namespace, made.Name, uid)}
		}
	}
	p.all[made.UID] = k
	return nil
}

// undo removes a pod that the provider refused. If the provider may still have the pod, undo keeps its record until the pod has
// stopped.
func (p *pods) undo(k *pod) error {
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	stop := stopping(k.Pod, k.Pod)
	if err := p.provider.DeletePod(ctx, p.given(stop)); errdefs.IsNotFound(err) {
		return p.forget(k)
	} else if err != nil {
		log.G(ctx).WithError(err).Warn("The provider does not stop the pod that it refused; it is asked again")
	}
	p.mu.Lock()
	k.Deleted = stop
	kept := k.record
	p.mu.Unlock()
	err := p.store.write(kept)
	p.working.Go(func() { p.stop(k) })
	return err
}

// forget removes all data of a refused pod. The provider has nothing left of the pod by then.
func (p *pods) forget(k *pod) error {
	err := p.clear(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, k.Pod.UID) // last: after this, the pod may be created again
	return err
}

// clear removes the objects and the record of a pod.
func (p *pods) clear(k *pod) error {
	p.objects.remove(&k.record)
	return p.store.remove(k.Pod.UID)
}
