// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"slices"
	"sync"
	"time"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/eviction"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stats"
)

const (
	// freeTime is the longest wait for the removal of containers and images.
	freeTime = 20 * time.Second
	// reclaimEvery is the interval of checks for removed containers.
	reclaimEvery = 100 * time.Millisecond
	// knowTime bounds the wait for usage figures of pods from after the shortage.
	knowTime = 20 * time.Second
)

// freeDisk removes the containers of ended pods and unused images, and then measures again. A slow removal continues while pods are evicted.
func (e *evictor) freeDisk(ctx context.Context) ([]eviction.Met, *statsv1alpha1.Summary, error) {
	bounded, cancel := context.WithTimeout(ctx, freeTime)
	defer cancel()
	first, stop := context.WithTimeout(bounded, freeTime/2) // leave time for images if a container cannot be removed
	e.reclaimContainers(first)
	stop()
	if err := e.collector.Free(bounded); err != nil {
		log.G(ctx).WithError(err).Warn("the disk is full, and images that nothing uses could not be removed")
	}
	select {
	case <-time.After(stats.Freshness): // until then, the result is the earlier measurement
	case <-ctx.Done():
	}
	return e.measureMachine(ctx)
}

// reclaimContainers removes the containers of ended pods with all their files: otherwise, an evicted pod would keep the disk full, and the next pod
// would be evicted.
func (e *evictor) reclaimContainers(ctx context.Context) {
	var left []*worker
	for _, w := range e.workers.allWorkers() {
		if pod := w.report.lastPod(); pod != nil && podEnded(pod) && w.report.hasContainers() && w.mail.putInput(func(in *inbox) { in.reclaim = true }) {
			left = append(left, w)
		}
	}
	for len(left) > 0 {
		select {
		case <-time.After(reclaimEvery):
		case <-ctx.Done():
			return
		}
		left = slices.DeleteFunc(left, func(w *worker) bool { return !w.report.hasContainers() })
	}
}

// awaitFigures measures until the figures of all pods are newer than since, for at most knowTime. With older figures, a pod that has just filled the
// disk looks empty, and another pod would be evicted.
func (e *evictor) awaitFigures(ctx context.Context, since time.Time) ([]eviction.Met, *statsv1alpha1.Summary, error) {
	until := time.Now().Add(knowTime)
	e.measureVolumes(ctx)
	for {
		select {
		case <-time.After(stats.Freshness): // until then, the result is the earlier measurement
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
		met, summary, err := e.measureMachine(ctx)
		if summary == nil || err != nil || len(met) == 0 || !hasOutdated(summary.Pods, since) || time.Now().After(until) {
			return met, summary, err
		}
	}
}

// measureVolumes measures the volumes of all pods now, except slow ones, which are large anyway.
func (e *evictor) measureVolumes(ctx context.Context) {
	patience, cancel := context.WithTimeout(ctx, stats.Freshness)
	defer cancel()
	var wg sync.WaitGroup
	for _, w := range e.workers.allWorkers() {
		if pod := w.report.lastPod(); !podEnded(pod) {
			wg.Go(func() { _, _ = e.meter.volumeUse(patience, pod, 0) }) // the caller of the summary gets the error
		}
	}
	wg.Wait()
}

// hasOutdated reports whether the writable layer of a container was measured before since.
func hasOutdated(pods []statsv1alpha1.PodStats, since time.Time) bool {
	for i := range pods {
		for j := range pods[i].Containers {
			if fs := pods[i].Containers[j].Rootfs; fs != nil && fs.Time.Time.Before(since) {
				return true
			}
		}
	}
	return false
}
