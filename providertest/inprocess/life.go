// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// restartDelay is the delay before a container runs again.
const restartDelay = time.Second

// pod is an instance at the backend.
type pod struct {
	cloud      *Cloud
	uid        types.UID
	ctx        context.Context // ends when everything of the pod is killed
	cancel     context.CancelFunc
	created    time.Time
	containers []*container
	volumes    map[string]*volume
	ending     chan struct{} // closed when the pod is asked to stop

	// guarded by cloud.mu
	spec     *corev1.Pod // replaced, never changed
	asked    bool        // ending is closed
	deadline time.Time   // when the pod is killed
	killer   *time.Timer
	over     bool // all containers have ended for good
	lost     bool
	ports    map[int32]*pipeListener
}

func newPod(ctx context.Context, c *Cloud, spec *corev1.Pod, objects Objects) (*pod, error) {
	p := &pod{cloud: c, uid: spec.UID, created: time.Now(), ending: make(chan struct{}), spec: spec.DeepCopy()}
	volumes, err := makeVolumes(ctx, spec, objects)
	if err != nil {
		return nil, err
	}
	p.volumes = volumes
	for kind, list := range map[bool][]corev1.Container{true: spec.Spec.InitContainers, false: spec.Spec.Containers} {
		for i := range list {
			k, err := newContainer(p, &list[i], kind)
			if err != nil {
				return nil, err
			}
			p.containers = append(p.containers, k)
		}
	}
	slices.SortStableFunc(p.containers, func(a, b *container) int {
		switch {
		case a.init == b.init:
			return 0
		case a.init:
			return -1
		}
		return 1
	})
	p.ctx, p.cancel = context.WithCancel(c.ctx)
	return p, nil
}

// findContainer returns a container of the pod, nil if there is none.
func (p *pod) findContainer(name string) *container {
	for _, k := range p.containers {
		if k.spec.Name == name {
			return k
		}
	}
	return nil
}

// runPod runs the pod: init containers one by one, then all others at once.
func (p *pod) runPod() {
	defer p.cancel()
	var mains, sidecars sync.WaitGroup
	stopSidecars := make(chan struct{})
	failed := false
	for _, k := range p.containers {
		switch {
		case !k.init:
		case k.sidecar:
			sidecars.Go(func() { k.runContainer(stopSidecars) })
			select {
			case <-k.begun:
			case <-p.ctx.Done():
			case <-p.ending:
			}
		default:
			k.runContainer(p.ending)
			failed = k.exitCode() != 0
		}
		if failed || p.isStopping() {
			break
		}
	}
	if !failed && !p.isStopping() {
		for _, k := range p.containers {
			if !k.init {
				mains.Go(func() { k.runContainer(p.ending) })
			}
		}
	}
	mains.Wait()
	close(stopSidecars)
	sidecars.Wait()
	p.finishPod()
}

func (p *pod) isStopping() bool {
	select {
	case <-p.ending:
		return true
	case <-p.ctx.Done():
		return true
	default:
		return false
	}
}

// finishPod reports how the pod ended. A pod that was to be deleted is gone then.
func (p *pod) finishPod() {
	c := p.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	p.over = true
	if p.killer != nil {
		p.killer.Stop()
	}
	c.sendState(p)
	if p.asked {
		c.remove(p)
	}
}

// endPod asks the pod to stop within a time. An earlier end stays valid. The caller holds cloud.mu.
func (p *pod) endPod(grace time.Duration) {
	deadline := time.Now().Add(grace)
	if p.over {
		p.asked = true
		p.cloud.remove(p)
		return
	}
	if p.asked {
		if deadline.Before(p.deadline) {
			p.deadline = deadline
			p.killer.Reset(grace)
		}
		return
	}
	p.asked, p.deadline = true, deadline
	if grace <= 0 { // the kill comes first: without a grace period, no container may end by itself
		p.cancel()
		close(p.ending)
		p.killer = time.NewTimer(0)
		return
	}
	close(p.ending)
	p.killer = time.AfterFunc(grace, p.cancel)
}
