// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

var errWatchEnded = errors.New("the watch ended before what was waited for")

const podPrefix = "pod-"

func podName(i int) string { return podPrefix + strconv.Itoa(i) }

// tracker records when pods are seen Running and gone, by one watch.
type tracker struct {
	allRunning, allGone chan struct{}   // closed when all pods are Running, or gone
	someEnded           chan struct{}   // closed when as many pods as there are endings have been seen Succeeded or Failed
	started             []chan struct{} // of each pod: closed when it was seen Running

	// written by run; read by others once the channel of their kind is closed
	running, ended, gone []time.Time

	// written by run
	runningLeft, goneLeft atomic.Int64
	endingsLeft           int
	resumed               atomic.Int64 // number of restarts of the watch
}

func newTracker(pods int) *tracker {
	t := &tracker{
		allRunning: make(chan struct{}), allGone: make(chan struct{}), someEnded: make(chan struct{}), started: make([]chan struct{}, pods),
		running: make([]time.Time, pods), ended: make([]time.Time, pods), gone: make([]time.Time, pods), endingsLeft: min(endings, pods),
	}
	for i := range t.started {
		t.started[i] = make(chan struct{})
	}
	t.runningLeft.Store(int64(pods))
	t.goneLeft.Store(int64(pods))
	return t
}

// watchPods begins to watch the pods of a namespace. Without a version it begins with the current state, in
// which there must be no pods.
func watchPods(ctx context.Context, client kubernetes.Interface, namespace, version string) (watch.Interface, error) {
	if version == "" {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		version = list.ResourceVersion
	}
	day := int64(24 * time.Hour / time.Second) // or the API server would end it after a random time
	w, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &day})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	return w, nil
}

// run follows the watch until all pods are gone. The API server ends a watch whose reader is slower than its
// writers, as on a busy machine. Then run starts a watch at the resource version at which the last watch
// ended, so it misses no event. Such watches are counted.
func (t *tracker) run(w watch.Interface, again func(version string) (watch.Interface, error)) error {
	defer func() { w.Stop() }()
	for version := ""; ; t.resumed.Add(1) {
		for event := range w.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				return fmt.Errorf("watch pods: got %s event with %T: %w", event.Type, event.Object, errWatchEnded)
			}
			version = pod.ResourceVersion
			if t.recordEvent(event.Type, pod, time.Now()) {
				return nil
			}
		}
		w.Stop()
		next, err := again(version)
		if err != nil {
			return err
		}
		w = next
	}
}

// recordEvent records one event, and reports whether all pods are gone.
func (t *tracker) recordEvent(event watch.EventType, pod *corev1.Pod, now time.Time) bool {
	i, err := strconv.Atoi(strings.TrimPrefix(upperName(pod), podPrefix))
	if err != nil || i < 0 || i >= len(t.running) {
		return false // a pod of another test
	}
	if pod.Status.Phase == corev1.PodRunning && t.running[i].IsZero() {
		t.running[i] = now
		close(t.started[i])
		if t.runningLeft.Add(-1) == 0 {
			close(t.allRunning)
		}
	}
	if phase := pod.Status.Phase; (phase == corev1.PodSucceeded || phase == corev1.PodFailed) && t.ended[i].IsZero() {
		t.ended[i] = now
		if t.endingsLeft--; t.endingsLeft == 0 {
			close(t.someEnded)
		}
	}
	if event == watch.Deleted && t.gone[i].IsZero() {
		t.gone[i] = now
		if t.goneLeft.Add(-1) == 0 {
			close(t.allGone)
			return true
		}
	}
	return false
}
