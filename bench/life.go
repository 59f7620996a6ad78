// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// life is one generation of pods on one node, from the first create to the last pod gone.
type life struct {
	cfg     config
	cluster *cluster
	agent   *process
	node    string // also the namespace of its pods

	tracker  *tracker
	tracking chan error         // takes the tracker's outcome
	untrack  context.CancelFunc // ends the tracker
}

// beginLife starts the agent as a new node, and gets ready for its pods.
func beginLife(ctx context.Context, cfg config, c *cluster, a agent, node string) (*life, error) {
	p, err := a.join(ctx, c, node, cfg.logs)
	if err != nil {
		return nil, err
	}
	l := &life{cfg: cfg, cluster: c, agent: p, node: node, tracker: newTracker(cfg.pods), tracking: make(chan error, 1)}
	if err := l.prepare(ctx); err != nil {
		p.stop()
		return nil, err
	}
	return l, nil
}

func (l *life) prepare(ctx context.Context) error {
	if err := makeNamespace(ctx, l.cluster.client, l.node); err != nil {
		return err
	}
	ctx, l.untrack = context.WithCancel(ctx)
	open := func(version string) (watch.Interface, error) {
		return watchPods(ctx, l.cluster.watcher, l.node, version)
	}
	w, err := open("")
	if err != nil {
		l.untrack()
		return err
	}
	go func() { l.tracking <- l.tracker.run(w, open) }()
	return nil
}

// end stops the agent and the watch.
func (l *life) end() {
	l.agent.stop()
	l.untrack()
}

// phase is what happened to all pods: what the client did, and what the node made of it.
type phase struct {
	begin time.Time
	asked []time.Time // when the API server had answered the client, by pod
	seen  []time.Time // when the outcome was seen on the watch, by pod
}

// createAll creates all pods and returns when all were seen Running.
func (l *life) createAll(ctx context.Context) (phase, error) {
	ph := phase{begin: time.Now()}
	pods := l.cluster.client.CoreV1().Pods(l.node)
	var err error
	ph.asked, err = forAll(ctx, l.cfg.workers, l.cfg.pods, func(ctx context.Context, i int) error {
		_, err := pods.Create(ctx, newPod(l.node, l.node, i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return ph, fmt.Errorf("create pods: %w", err)
	}
	err = l.wait(ctx, l.tracker.allRunning)
	ph.seen = l.tracker.running
	return ph, err
}

// deleteAll deletes all pods as kubectl does, with their grace period, and returns when all are gone.
func (l *life) deleteAll(ctx context.Context) (phase, error) {
	ph := phase{begin: time.Now()}
	pods := l.cluster.client.CoreV1().Pods(l.node)
	var err error
	ph.asked, err = forAll(ctx, l.cfg.workers, l.cfg.pods, func(ctx context.Context, i int) error {
		return pods.Delete(ctx, podName(i), metav1.DeleteOptions{})
	})
	if err != nil {
		return ph, fmt.Errorf("delete pods: %w", err)
	}
	err = l.wait(ctx, l.tracker.allGone)
	ph.seen = l.tracker.gone
	return ph, err
}

// wait waits for the channel to be closed, for as long as everything lives.
func (l *life) wait(ctx context.Context, happened <-chan struct{}) error {
	select {
	case <-happened:
		return nil
	case err := <-l.tracking:
		if err == nil {
			return nil // it ends when all are gone, which is the last that is waited for
		}
		return err
	case <-l.agent.done:
		return l.agent.lost()
	case <-l.cluster.done:
		return l.cluster.lost()
	case <-ctx.Done():
		return fmt.Errorf("%w: of %d pods, %d were not seen Running and %d not gone; the agent says: %s",
			context.Cause(ctx), l.cfg.pods, l.tracker.runningLeft.Load(), l.tracker.goneLeft.Load(), l.agent.said)
	}
}

// total is the time from the beginning until the last pod was seen.
func (p phase) total() time.Duration { return latest(p.seen).Sub(p.begin) }

// client is the time that the client took to ask.
func (p phase) client() time.Duration { return latest(p.asked).Sub(p.begin) }

// lag is the time from the last answer to the client until the last pod was seen.
func (p phase) lag() time.Duration { return latest(p.seen).Sub(latest(p.asked)) }

// perPod returns the time of each pod from the answer to the client until it was seen, ascending.
func (p phase) perPod() []time.Duration {
	d := make([]time.Duration, len(p.asked))
	for i := range d {
		d[i] = p.seen[i].Sub(p.asked[i])
	}
	slices.Sort(d)
	return d
}

func latest(times []time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// percentile returns the value that p percent of the ascending values do not exceed.
func percentile[T any](ascending []T, p int) T {
	return ascending[max(0, (len(ascending)*p+99)/100-1)]
}
