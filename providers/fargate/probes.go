// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// prober asks the ports of pods whether their containers are ready: ECS does not.
type prober struct {
	asks *probe.Prober

	mu      sync.Mutex
	known   map[types.UID][]string // guarded by mu; IDs of containers that are asked
	changed map[types.UID]bool     // guarded by mu; pods whose status is to be made anew
	wake    chan struct{}
}

func newProber(event func(pod *corev1.Pod, container, eventType, reason, message string)) *prober {
	p := &prober{known: map[types.UID][]string{}, changed: map[types.UID]bool{}, wake: make(chan struct{}, 1)}
	p.asks = probe.New(probe.Config{
		Exec: func(context.Context, string, []string, time.Duration) ([]byte, []byte, error) {
			return nil, nil, errdefs.InvalidInput("probes by commands are health checks of ECS")
		},
		Changed: p.mark, Event: event,
	})
	return p
}

// mark notes that what is known of a pod has changed.
func (p *prober) mark(uid types.UID) {
	p.mu.Lock()
	p.changed[uid] = true
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// see takes the containers of a pod as they are now. It does not block.
func (p *prober) see(pod *corev1.Pod) {
	var ids []string
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if !networkProbe(c) {
			continue
		}
		for j := range pod.Status.ContainerStatuses {
			s := &pod.Status.ContainerStatuses[j]
			if s.Name != c.Name || s.State.Running == nil || s.ContainerID == "" {
				continue
			}
			id := strings.TrimPrefix(s.ContainerID, scheme)
			ids = append(ids, id)
			t := probe.Target{Pod: pod, Container: c, ID: id, StartedAt: s.State.Running.StartedAt.Time, Running: true}
			if _, known := p.asks.Result(id); !known && s.Ready {
				t.StartedAt = time.Unix(0, 0) // it was found to be ready before this process was there, whatever the clocks say
			}
			for _, ip := range pod.Status.PodIPs {
				t.PodIPs = append(t.PodIPs, ip.IP)
			}
			if len(t.PodIPs) > 0 {
				p.asks.Ensure(t)
			}
		}
	}
	p.mu.Lock()
	old := p.known[pod.UID]
	if p.known[pod.UID] = ids; len(ids) == 0 {
		delete(p.known, pod.UID)
	}
	p.mu.Unlock()
	p.forget(old, ids)
}

// forget lets containers not be asked any more that are not among others.
func (p *prober) forget(old, but []string) {
	there := map[string]bool{}
	for _, id := range but {
		there[id] = true
	}
	for _, id := range old {
		if !there[id] {
			p.asks.Forget(id)
		}
	}
}

// only lets no pod be asked but these: one that was lost is not reported.
func (p *prober) only(pods []*corev1.Pod) {
	there := map[types.UID]bool{}
	for _, pod := range pods {
		there[pod.UID] = true
	}
	p.mu.Lock()
	var gone []string
	for uid, ids := range p.known {
		if !there[uid] {
			gone = append(gone, ids...)
			delete(p.known, uid)
		}
	}
	p.mu.Unlock()
	p.forget(gone, nil)
}

// ready reports whether a container of a pod was found to be ready: by the prober, and before that as the status of the pod has it, which
// may be from before a restart.
func (p *prober) ready(pod *corev1.Pod, id string) bool {
	if result, known := p.asks.Result(strings.TrimPrefix(id, scheme)); known {
		return result.Ready
	}
	return id != "" && slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.ContainerID == id && s.Ready })
}

// status makes the status of a pod of its task, and takes its containers from it: they are asked even if it is as it was.
func (p *prober) status(pod *corev1.Pod, t ecstypes.Task) corev1.PodStatus {
	next := *pod // it is handed out, and does not change
	next.Status = podstatus.Status(pod, observe(pod, t, func(id string) bool { return p.ready(pod, id) }))
	p.see(&next)
	return next.Status
}

// run probes until ctx ends, and tells of pods whose status is to be made anew.
func (p *prober) run(ctx context.Context, tell func(types.UID)) {
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() { p.asks.Run(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		p.mu.Lock()
		changed := p.changed
		p.changed = map[types.UID]bool{}
		p.mu.Unlock()
		for uid := range changed {
			tell(uid)
		}
	}
}
