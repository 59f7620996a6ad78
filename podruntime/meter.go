// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
)

const (
	// meterTime bounds the measurement of one pod's volumes. After it, the count so far is the result.
	meterTime = time.Minute
	// meterTurns is the number of pods that are measured concurrently.
	meterTurns = 2
	// meterRest is the pause after the measurement of a pod, as a multiple of its duration: a pod with a million files must not delay the others.
	meterRest = 5
)

// errNotMeasured is the error for a pod during its first measurement.
var errNotMeasured = errors.New("its volumes are being measured")

// meter measures the volumes of pods in the background, and keeps the last figures in the meantime. Callers never wait for a walk through files,
// because a container can make as many files as it likes.
type meter struct {
	walk  func(ctx context.Context, pod *corev1.Pod) (map[string]volumes.Use, error)
	begin func(work func(ctx context.Context)) bool // runs work in the background until ctx ends: see background.beginWithin
	turns chan struct{}

	mu   sync.Mutex
	pods map[types.UID]*figures // guarded by mu
}

// figures are the measured figures of a pod's volumes. The mu of meter guards all fields.
type figures struct {
	use  map[string]volumes.Use // replaced, never changed
	err  error                  // of the last walk
	at   time.Time              // when the last walk ended; zero: there was no walk yet
	next time.Time              // the earliest time of the next walk
	busy chan struct{}          // closed at the end of the walk in progress; nil without one
}

func newMeter(walk func(context.Context, *corev1.Pod) (map[string]volumes.Use, error), begin func(func(context.Context)) bool) *meter {
	return &meter{walk: walk, begin: begin, turns: make(chan struct{}, meterTurns), pods: map[types.UID]*figures{}}
}

// volumeUse returns the usage of each volume of the pod. The figures are not older than fresh, unless patience ends before a new measurement. The
// result must not be changed.
func (m *meter) volumeUse(patience context.Context, pod *corev1.Pod, fresh time.Duration) (map[string]volumes.Use, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.pods[pod.UID]
	if f == nil {
		f = &figures{}
		m.pods[pod.UID] = f
	}
	if now := time.Now(); f.busy == nil && (f.at.IsZero() || now.Sub(f.at) >= fresh && !now.Before(f.next)) {
		busy := make(chan struct{})
		if m.begin(func(ctx context.Context) { m.measurePod(ctx, pod, f) }) {
			f.busy = busy
		}
	} else if f.busy != nil && !f.at.IsZero() {
		return f.use, f.err // this caller has already waited for a walk
	}
	if busy := f.busy; busy != nil {
		m.mu.Unlock()
		select {
		case <-busy:
		case <-patience.Done():
		}
		m.mu.Lock()
	}
	if f.at.IsZero() {
		return nil, errNotMeasured
	}
	return f.use, f.err
}

// measurePod walks through the volumes of a pod when a turn is free.
func (m *meter) measurePod(ctx context.Context, pod *corev1.Pod, f *figures) {
	var use map[string]volumes.Use
	var err error
	var took time.Duration
	select {
	case m.turns <- struct{}{}:
		begin := time.Now()
		bounded, cancel := context.WithTimeout(ctx, meterTime)
		use, err = m.walk(bounded, pod)
		cancel()
		took = time.Since(begin)
		<-m.turns
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil && ctx.Err() == nil {
		log.G(ctx).WithField("pod", pod.Namespace+"/"+pod.Name).WithError(err).Warn("measure the volumes of a pod")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f.at, f.err = time.Now(), err
	f.next = f.at.Add(meterRest * took)
	if err == nil {
		f.use = mergeUse(f.use, use)
	}
	close(f.busy)
	f.busy = nil
}

// mergeUse returns the figures after a walk: an incomplete figure does not fall below the earlier figure.
func mergeUse(last, now map[string]volumes.Use) map[string]volumes.Use {
	all := maps.Clone(last)
	if all == nil {
		all = map[string]volumes.Use{}
	}
	for name, use := range now {
		if was := last[name]; use.AtLeast {
			use.Bytes, use.Inodes = max(use.Bytes, was.Bytes), max(use.Inodes, was.Inodes)
		}
		all[name] = use
	}
	return all
}

// forgetPod drops the figures of a gone pod.
func (m *meter) forgetPod(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, uid)
}
