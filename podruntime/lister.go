// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
)

const (
	// listEvery is the interval of complete lists. With a runtime without events, it bounds the time until an unexpected end is detected.
	listEvery = time.Second
	// listWithEvents is the interval of lists while the runtime sends events.
	listWithEvents = 10 * time.Second
	// listAnew is the number of lists after which workers also get an unchanged list, because a container that was created and removed between two
	// lists is in neither.
	listAnew = 30
	// listTimeout is the longest time for a list.
	listTimeout = 2 * time.Minute
)

// lister lists the runtime's content for all pods together, and notifies workers of changes.
type lister struct {
	runtime cri.RuntimeService
	node    string
	workers *workers
	lists   *lists
	events  atomic.Bool // the runtime sends events

	last map[types.UID]*listed // owned by run
}

// run lists until ctx ends.
func (l *lister) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	healthy := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		all, err := l.listObjects(ctx)
		l.lists.recordError(err)
		switch {
		case err == nil:
			l.informWorkers(all)
			l.lists.admitCallers()
			if !healthy {
				log.G(ctx).Info("the container runtime answers again")
			}
			healthy = true
		case healthy && ctx.Err() == nil:
			log.G(ctx).WithError(err).Warn("list the containers of the container runtime; pods stay as they are until it answers")
			healthy = false
		}
		if l.events.Load() && err == nil {
			timer.Reset(listWithEvents)
		} else {
			timer.Reset(listEvery)
		}
	}
}

// listObjects lists all sandboxes and containers of this node. If one of the lists fails, both fail, because a partial pod would look like an ended
// pod.
func (l *lister) listObjects(ctx context.Context) (map[types.UID]*listed, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	round := l.lists.beginRound()
	mine := map[string]string{criconfig.LabelNode: l.node}
	// Sandboxes are listed after containers, so each listed container's sandbox is in the list unless it is gone.
	containers, err := l.runtime.ListContainers(ctx, &runtimeapi.ContainerFilter{LabelSelector: mine})
	if err != nil {
		return nil, err
	}
	sandboxes, err := l.runtime.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{LabelSelector: mine})
	if err != nil {
		return nil, err
	}
	all := map[types.UID]*listed{}
	of := func(labels map[string]string) *listed {
		uid := types.UID(labels[criconfig.LabelPodUID])
		if all[uid] == nil {
			all[uid] = &listed{
				round: round, namespace: labels[criconfig.LabelPodNamespace], name: labels[criconfig.LabelPodName],
				sandboxes: map[string]runtimeapi.PodSandboxState{}, containers: map[string]listedContainer{},
			}
		}
		return all[uid]
	}
	for _, s := range sandboxes {
		of(s.Labels).sandboxes[s.Id] = s.State
	}
	for _, c := range containers {
		of(c.Labels).containers[c.Id] = listedContainer{c.PodSandboxId, c.State}
	}
	return all, nil
}

// informWorkers sends workers the changes since the last list, and sometimes the whole list. An unknown pod gets a worker even without a change,
// because its earlier worker may have ended just before.
func (l *lister) informWorkers(all map[types.UID]*listed) {
	round := l.lists.lastRound()
	for uid, now := range all {
		if uid != "" && (!now.equals(l.last[uid]) || l.workers.findWorker(uid) == nil) {
			for !l.workers.ensureWorker(podID{uid, now.namespace, now.name}).mail.putInput(func(in *inbox) { in.list = now }) {
			}
		}
	}
	for _, w := range l.workers.allWorkers() {
		switch {
		case all[w.id.uid] == nil && (l.last[w.id.uid] != nil || round%listAnew == 0):
			w.mail.putInput(func(in *inbox) { in.list = &listed{round: round} })
		case all[w.id.uid] != nil && round%listAnew == 0:
			w.mail.putInput(func(in *inbox) { in.list = all[w.id.uid] })
		}
	}
	l.last = all
}
