// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/probing"
)

// ReasonUnhealthy is the reason of a pod that this process ended after a failed startup or liveness probe of a
// container.
const ReasonUnhealthy = "Unhealthy"

// killed is the exit code of a killed container.
const killed = 137

const (
	// askTime bounds a request to end or to restart. A much later response would concern an outdated probe.
	askTime = 15 * time.Second
	// silentFor is the delay before the next action on a container after the service did not answer.
	silentFor = 10 * time.Second
)

// actOn ends or restarts the containers of a pod after a failed probe. It does not block.
func (p *prober[T]) actOn(ctx context.Context, uid types.UID, beside *sync.WaitGroup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.known[uid] {
		result, _ := p.asks.Result(c.id)
		if result.Failed == "" || c.acting {
			continue
		}
		c.acting = true
		about, cancel := context.WithCancel(ctx)
		c.forget = cancel
		beside.Go(func() {
			defer cancel()
			p.act(ctx, about, c, result.Failed)
			p.judgeAnew(ctx, c)
		})
	}
}

// judgeAnew restarts the probes of a container that keeps running, as if it had not failed. A container that is still tracked has not been
// ended or restarted.
func (p *prober[T]) judgeAnew(ctx context.Context, c *probed) {
	p.mu.Lock()
	again := ctx.Err() == nil && p.known[c.uid][c.container] == c && !c.over
	if again {
		if e := p.ended[c.uid]; e.by == c && !e.accepted {
			delete(p.ended, c.uid)
		}
		c.acting, c.forget = false, nil
		p.asks.Forget(c.id)
	}
	p.mu.Unlock()
	if again {
		p.cache.Refresh(c.uid)
	}
}

// act ends or restarts a container. It returns when the outcome at the service is known, or when about ends with the run of the container.
// A request that was already sent continues until ctx ends, because a driver that stops and then starts must not be interrupted in between.
func (p *prober[T]) act(ctx, about context.Context, c *probed, failed probing.Kind) {
	if p.failing() != nil { // the failure may be caused by this process's network, not by the container
		pause(about, silentFor)
		return
	}
	of, lives := p.targetOf(c)
	if !lives {
		return
	}
	restarter, again := p.driver.(Restarter[T])
	again = again && podstatus.RestartsAfter(of.Pod, containerOf(of.Pod, c.container), killed)
	if again {
		if !pause(about, p.backsOff(c)) {
			return
		}
		if of, lives = p.targetOf(c); !lives {
			return
		}
	}
	message := fmt.Sprintf("Container %s failed %s probe", c.container, strings.ToLower(string(failed)))
	reason := message
	p.mu.Lock()
	if c.said != "" {
		reason += ": " + c.said
	}
	p.mu.Unlock()
	if again {
		message += ", will be restarted"
	} else {
		p.note(c, reason, false)
	}
	p.record(of.Pod, c.container, corev1.EventTypeNormal, "Killing", message)
	for about.Err() == nil {
		p.expect(c, again)
		err := p.ask(ctx, func(ctx context.Context) error {
			if again {
				return restarter.Restart(ctx, of, reason)
			}
			return p.by.End(ctx, of, reason)
		})
		if err == nil {
			if !again {
				p.note(c, reason, true)
			}
			p.cache.Hurry()
			pause(about, actsWithin)
			return
		}
		after, throttled := errdefs.RetryAfterOf(err)
		if throttled || madeNothing(err) || errdefs.IsNotFound(err) { // otherwise the service may still restart the container
			p.expect(c, false)
			p.cache.Refresh(c.uid)
		}
		if ctx.Err() != nil {
			return
		}
		log.G(ctx).WithError(err).WithField("pod", of.Pod.Namespace+"/"+of.Pod.Name).WithField("container", c.container).Warnf("%s does not end a container that has failed a probe", p.config.Service)
		if !throttled {
			pause(about, silentFor)
			return
		}
		if !pause(about, after) {
			return
		}
		if of, lives = p.targetOf(c); !lives {
			return
		}
	}
}

// targetOf returns the current state of a container and its pod. It returns false if the pod is gone or is being deleted, so that its
// containers are left alone.
func (p *prober[T]) targetOf(c *probed) (of Target[T], lives bool) {
	pod, instance, there := p.cache.Get(c.uid)
	if !there || containerOf(pod, c.container) == nil || pod.DeletionTimestamp != nil {
		return of, false
	}
	return Target[T]{Pod: pod, Instance: instance, Container: c.container, State: StateOf(pod, c.container)}, true
}

// ask makes a request about a container.
func (*prober[T]) ask(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return request(ctx)
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// backsOff returns the wait before a container is restarted, and records the time of that restart.
func (p *prober[T]) backsOff(c *probed) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, wait := time.Now(), time.Duration(0)
	switch b := &c.backoff; {
	case b.last.IsZero() || now.Sub(b.last) > wellFor:
		b.wait = firstBackoff
	default:
		wait = max(0, b.wait-now.Sub(b.last))
		b.wait = min(2*b.wait, longestBackoff)
	}
	c.backoff.last = now.Add(wait)
	return wait
}

// containerOf returns the container of a pod by name, or nil if the pod does not have it.
func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	if pod == nil {
		return nil
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// note records why this process ends a pod. Once the service has accepted the request, the status has the reason, and another process finds
// it there. Before that, only the status of an ended pod has it, because a list may show the end before the service responds.
func (p *prober[T]) note(c *probed, reason string, accepted bool) {
	p.mu.Lock()
	if !p.ended[c.uid].accepted { // otherwise another container has ended the pod
		p.ended[c.uid] = ending{by: c, reason: reason, accepted: accepted}
	}
	p.mu.Unlock()
	p.cache.Refresh(c.uid)
}

// explain adds the reason to the status of a pod that this process or an earlier one has ended. A program that exits with 0 after a stop
// signal has not succeeded.
func (p *prober[T]) explain(pod *corev1.Pod, status *corev1.PodStatus) {
	p.mu.Lock()
	e := p.ended[pod.UID]
	p.mu.Unlock()
	over := status.Phase == corev1.PodFailed || status.Phase == corev1.PodSucceeded
	reason, ended := e.reason, e.accepted || e.by != nil && over
	if !ended && over && pod.Status.Reason == ReasonUnhealthy {
		reason, ended = pod.Status.Message, true
	}
	if !ended {
		return
	}
	status.Reason, status.Message = ReasonUnhealthy, reason
	if over {
		status.Phase = corev1.PodFailed
	}
}

// expect records that a container is about to be restarted, or that it is not.
func (p *prober[T]) expect(c *probed, restart bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.asked = time.Time{}
	if restart {
		c.asked = time.Now()
	}
}

// goesOn keeps a pod Running while one of its containers is being restarted. Programs that exit successfully because they were stopped do
// not end the pod.
func (p *prober[T]) goesOn(pod *corev1.Pod, status *corev1.PodStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return
	}
	for _, c := range p.known[pod.UID] {
		if c.isRestarted() {
			status.Phase, status.Reason, status.Message = corev1.PodRunning, "", ""
		}
	}
}

// count adds unreported restarts: a run with a later start than the last seen run is one more restart. The container may wait between both
// runs.
func (p *prober[T]) count(uid types.UID, told, now *corev1.ContainerStatus) {
	if told == nil {
		return
	}
	last := probed{runID: told.ContainerID, started: startOf(told), restarts: told.RestartCount}
	p.mu.Lock()
	if c := p.known[uid][now.Name]; c != nil && sameStart(last.started, c.started) { // a service may count before the next run begins
		last = *c
	}
	p.mu.Unlock()
	begin := startOf(now)
	another := now.State.Running != nil && !sameStart(last.started, begin) && begin.After(last.started)
	now.RestartCount = max(now.RestartCount, told.RestartCount)
	if another {
		now.RestartCount = max(now.RestartCount, last.restarts+1)
	}
	switch {
	case now.LastTerminationState.Terminated != nil:
	case another && told.State.Terminated != nil:
		now.LastTerminationState.Terminated = told.State.Terminated
	case now.State.Running != nil && (another || now.RestartCount > told.RestartCount) && !last.started.IsZero():
		now.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: killed, Reason: "Error", StartedAt: metav1.NewTime(last.started), FinishedAt: now.State.Running.StartedAt, ContainerID: last.runID,
		}
	case !another:
		now.LastTerminationState = told.LastTerminationState
	}
}

// startOf returns the start time of the run of a container, or the zero time if it is unknown.
func startOf(s *corev1.ContainerStatus) time.Time {
	switch {
	case s.State.Running != nil:
		return s.State.Running.StartedAt.Time
	case s.State.Terminated != nil:
		return s.State.Terminated.StartedAt.Time
	}
	return time.Time{}
}

// event records an event of the probes about a container, and keeps its message.
func (p *prober[T]) event(pod *corev1.Pod, container, eventType, reason, message string) {
	p.mu.Lock()
	if c := p.known[pod.UID][container]; c != nil {
		_, c.said, _ = strings.Cut(message, " probe failed: ")
	}
	p.mu.Unlock()
	p.record(pod, container, eventType, reason, message)
}

// record records an event about a container.
func (p *prober[T]) record(pod *corev1.Pod, container, eventType, reason, message string) {
	if p.config.Recorder == nil {
		return
	}
	of := &corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, FieldPath: "spec.containers{" + container + "}",
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == container {
			of.FieldPath = "spec.initContainers{" + container + "}"
		}
	}
	p.config.Recorder.Event(of, eventType, reason, message)
}
