// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/probing"
)

// forgetEvery is the interval of checks for pods that are gone but still have probed containers.
const forgetEvery = 10 * time.Second

// prober runs the probes for a service without probes.
type prober[T any] struct {
	config  Config
	driver  Driver[T]
	by      Prober[T] // the driver
	cache   *poll.Cache[T]
	failing func() error                          // returns the error of lists
	base    func(*corev1.Pod, T) corev1.PodStatus // the status without the probe results
	counts  bool                                  // for a Restarter: runs are counted here
	asks    probing.Prober
	wake    chan struct{} // holds a value when changed has a pod

	mu      sync.Mutex
	known   map[types.UID]map[string]*probed // guarded by mu, with all entries: by name, probed containers, and for a Restarter all containers that have run
	byID    map[string]*probed               // guarded by mu
	changed map[types.UID]bool               // guarded by mu; pods with new probe results
	ended   map[types.UID]ending             // guarded by mu; why this process ends a pod
}

// ending is why this process ends a pod.
type ending struct {
	by       *probed // the container with the failed probe
	reason   string
	accepted bool // the service has accepted the request
}

// probed is the last seen run of a container.
type probed struct {
	uid       types.UID
	container string
	id        string // the ID in probes
	runID     string // the ID in the status
	started   time.Time
	restarts  int32
	over      bool // the run has ended; its data are kept for the next run

	said    string             // the message of the last failed probe
	asked   time.Time          // when a restart was requested, until it is visible
	acting  bool               // the run is being ended or restarted
	forget  context.CancelFunc // ends the waits of the action on the run; nil without an action
	backoff backoff
}

// actsWithin is the time until a service shows another run of a container after it has accepted a request.
const actsWithin = 2 * time.Minute

// isRestarted reports whether a restart was requested and may still become visible. The caller holds the mutex of the prober.
func (c *probed) isRestarted() bool { return !c.asked.IsZero() && time.Since(c.asked) < actsWithin }

// backoff is the restart delay of a container with repeated failures.
type backoff struct {
	last time.Time // the time of the last requested restart
	wait time.Duration
}

const (
	firstBackoff, longestBackoff = 10 * time.Second, 5 * time.Minute
	// wellFor is the time after a restart when earlier failures of the container no longer count.
	wellFor = 10 * time.Minute
)

// idOf returns the ID of a container without its scheme. If the service gives no ID, it returns the pod and
// name.
func idOf(pod *corev1.Pod, s *corev1.ContainerStatus) string {
	if _, id, ok := strings.Cut(s.ContainerID, "://"); ok {
		return id
	}
	return string(pod.UID) + "/" + s.Name
}

// toldOf reports whether the status of the pod describes the current run of the container.
func toldOf(pod *corev1.Pod, s *corev1.ContainerStatus) bool {
	told := StateOf(pod, s.Name)
	return told != nil && told.ContainerID != "" && told.ContainerID == s.ContainerID && told.RestartCount == s.RestartCount && told.State.Running != nil &&
		sameStart(told.State.Running.StartedAt.Time, s.State.Running.StartedAt.Time)
}

// sameStart reports whether two times belong to one start: the API has whole seconds, and a service may not know the exact time at first.
func sameStart(a, b time.Time) bool {
	return a.IsZero() || b.IsZero() || a.Sub(b).Abs() < time.Second
}

// begin records that a container runs, and forgets its previous run.
func (p *prober[T]) begin(uid types.UID, id string, s *corev1.ContainerStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.known[uid]
	if all == nil {
		all = map[string]*probed{}
		p.known[uid] = all
	}
	next := &probed{uid: uid, container: s.Name, id: id, runID: s.ContainerID, started: s.State.Running.StartedAt.Time, restarts: s.RestartCount}
	if before := all[next.container]; before != nil {
		if !before.over && before.id == next.id && before.restarts == next.restarts && sameStart(before.started, next.started) {
			before.started = cmp.Or(before.started, next.started)
			return
		}
		next.backoff = before.backoff
		p.drop(before)
		if e := p.ended[uid]; e.by == before && !e.accepted { // the pod continues
			delete(p.ended, uid)
		}
	}
	all[next.container], p.byID[next.id] = next, next
}

// drop forgets a run. The caller holds p.mu.
func (p *prober[T]) drop(c *probed) {
	if c.forget != nil {
		c.forget()
	}
	if p.byID[c.id] == c {
		delete(p.byID, c.id)
	}
	p.asks.Forget(c.id)
}

// endBut stops the probes of all containers of a pod, except for the containers with these names.
func (p *prober[T]) endBut(uid types.UID, names map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, c := range p.known[uid] {
		if !names[name] && !c.over {
			p.drop(c)
			c.over = true
		}
	}
}

// forgetGone forgets removed pods and requested restarts that had no effect.
func (p *prober[T]) forgetGone() {
	p.mu.Lock()
	var all []types.UID
	late := map[types.UID]bool{}
	for uid, containers := range p.known {
		all = append(all, uid)
		for _, c := range containers {
			if !c.asked.IsZero() && !c.isRestarted() {
				c.asked, late[uid] = time.Time{}, true
			}
		}
	}
	for uid := range p.ended {
		all = append(all, uid)
	}
	p.mu.Unlock()
	for _, uid := range all {
		if _, _, there := p.cache.Get(uid); !there {
			p.endBut(uid, nil)
			p.mu.Lock()
			delete(p.known, uid)
			delete(p.ended, uid)
			p.mu.Unlock()
		} else if late[uid] {
			p.cache.Refresh(uid)
		}
	}
}

// mark records that the probe results of a pod have changed.
func (p *prober[T]) mark(uid types.UID) {
	p.mu.Lock()
	p.changed[uid] = true
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
