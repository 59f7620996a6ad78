// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// life is one generation of pods, from the first create to the end of the last pod.
type life struct {
	machine   *machine
	scenario  scenario
	agent     *process
	nodes     []string
	namespace string   // of the pods
	program   []string // of the agent's pods; see process
	deaf      bool     // whether programs use up their grace period

	tracker  *tracker
	below    *tracker   // of the lower cluster; nil without one
	tracking chan error // takes the tracker's outcome
	end      func()     // ends agent and tracker, once
}

// beginLife starts the agent with new nodes, and prepares for their pods.
func beginLife(ctx context.Context, m *machine, s scenario, a agent, prefix string) (*life, error) {
	p, err := a.start(ctx, m, s, prefix)
	if err != nil {
		return nil, err
	}
	l, err := m.newLife(ctx, s, p, s.nodeNames(prefix), prefix)
	if err != nil {
		p.stop()
		return nil, err
	}
	forget := l.end
	l.end = sync.OnceFunc(func() {
		p.stop()
		forget()
	})
	return l, nil
}

// newLife prepares for pods of a running agent, in a new namespace. Its end does not stop the agent.
func (m *machine) newLife(ctx context.Context, s scenario, p *process, nodes []string, namespace string) (*life, error) {
	ctx, cancel := context.WithCancel(ctx)
	l := &life{
		machine: m, scenario: s, agent: p, nodes: nodes, namespace: namespace, program: p.program,
		tracker: newTracker(s.Pods), tracking: make(chan error, 1), end: cancel,
	}
	if err := l.prepareNamespace(ctx); err != nil {
		cancel()
		return nil, err
	}
	return l, nil
}

func (l *life) prepareNamespace(ctx context.Context) error {
	if err := makeNamespace(ctx, l.machine.client, l.namespace); err != nil {
		return err
	}
	if l.scenario.Remote {
		if err := makeRootCA(ctx, l.machine.client, l.namespace); err != nil {
			return err
		}
	}
	open := func(version string) (watch.Interface, error) {
		return watchPods(ctx, l.machine.watcher, l.namespace, version)
	}
	w, err := open("")
	if err != nil {
		return err
	}
	go func() { l.tracking <- l.tracker.run(w, open) }()
	if l.agent.lower != nil {
		return l.agent.lower.trackPods(ctx, l)
	}
	return nil
}

// phase is one phase of all pods: the changes of the client, and the reactions of the node.
type phase struct {
	begin time.Time
	asked []time.Time // when the API server had answered the client, by pod
	seen  []time.Time // when the outcome was seen on the watch, by pod
}

// createAll creates all pods and returns when all were seen Running.
func (l *life) createAll(ctx context.Context) (phase, error) {
	ph := phase{begin: time.Now()}
	pods := l.machine.client.CoreV1().Pods(l.namespace)
	var err error
	ph.asked, err = forAll(ctx, l.machine.cfg.workers, l.scenario.Pods, func(ctx context.Context, i int) error {
		if err := awaitTurn(ctx, ph.begin, i, l.machine.cfg.podInterval(l.scenario)); err != nil {
			return err
		}
		_, err := pods.Create(ctx, l.newPod(i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return ph, fmt.Errorf("create pods: %w", err)
	}
	err = l.wait(ctx, l.tracker.allRunning)
	ph.seen = l.tracker.running
	return ph, err
}

// awaitTurn waits until it is time for the i-th pod.
func awaitTurn(ctx context.Context, begin time.Time, i int, every time.Duration) error {
	if wait := time.Until(begin.Add(time.Duration(i) * every)); wait > 0 {
		return waitFor(ctx, wait)
	}
	return nil
}

// newPod returns the i-th pod.
func (l *life) newPod(i int) *corev1.Pod {
	p := newPod(l.namespace, l.nodes[i%len(l.nodes)], i)
	if l.scenario.Runtimes {
		grace := int64(runtimesGrace / time.Second)
		p.Spec.TerminationGracePeriodSeconds = &grace
	}
	if l.program != nil {
		p.Spec.Containers[0].Command = slices.Concat(l.program, []string{podName(i)})
	}
	if l.scenario.Remote {
		p.Spec.AutomountServiceAccountToken = nil
	}
	if l.scenario.isCloud() && !l.scenario.Restarts { // otherwise an ended pod would be started again
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	if l.deaf {
		p.Spec.Containers[0].Args = []string{"deaf"}
	}
	return p
}

// deleteAll deletes all pods as kubectl does, with their grace period, and returns when all are gone.
func (l *life) deleteAll(ctx context.Context) (phase, error) {
	ph := phase{begin: time.Now()}
	pods := l.machine.client.CoreV1().Pods(l.namespace)
	var err error
	ph.asked, err = forAll(ctx, l.machine.cfg.workers, l.scenario.Pods, func(ctx context.Context, i int) error {
		if l.scenario.isCloud() { // its quotas are for deletes too
			if err := awaitTurn(ctx, ph.begin, i, l.machine.cfg.podInterval(l.scenario)); err != nil {
				return err
			}
		}
		return pods.Delete(ctx, podName(i), metav1.DeleteOptions{})
	})
	if err != nil {
		return ph, fmt.Errorf("delete pods: %w", err)
	}
	err = l.wait(ctx, l.tracker.allGone)
	ph.seen = l.tracker.gone
	return ph, err
}

// wait waits until the channel is closed, as long as all processes live.
func (l *life) wait(ctx context.Context, happened <-chan struct{}) error {
	select {
	case <-happened:
		return nil
	case err := <-l.tracking:
		if err == nil {
			return nil // run ends when all pods are gone, which is the last event
		}
		return err
	case <-l.agent.done:
		return l.agent.endReason()
	case <-l.agent.besideDone():
		return l.agent.beside.endReason()
	case <-l.machine.done:
		return l.machine.endReason()
	case <-ctx.Done():
		return fmt.Errorf("%w: of %d pods, %d were not seen Running and %d not gone; the agent says: %s",
			context.Cause(ctx), l.scenario.Pods, l.tracker.runningLeft.Load(), l.tracker.goneLeft.Load(), l.agent.said)
	}
}

// totalTime returns the time from the beginning until the last pod was seen.
func (p phase) totalTime() time.Duration { return latestTime(p.seen).Sub(p.begin) }

// clientTime returns the time of the client's requests.
func (p phase) clientTime() time.Duration { return latestTime(p.asked).Sub(p.begin) }

// lagTime returns the time from the last answer to the client until the last pod was seen.
func (p phase) lagTime() time.Duration { return latestTime(p.seen).Sub(latestTime(p.asked)) }

// perPod returns the time of each pod from the answer to the client until it was seen, ascending.
func (p phase) perPod() []time.Duration {
	d := make([]time.Duration, len(p.asked))
	for i := range d {
		d[i] = p.seen[i].Sub(p.asked[i])
	}
	slices.Sort(d)
	return d
}

func latestTime(times []time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// percentileOf returns the value that p percent of the ascending values do not exceed.
func percentileOf[T any](ascending []T, p int) T {
	return ascending[max(0, (len(ascending)*p+99)/100-1)]
}
