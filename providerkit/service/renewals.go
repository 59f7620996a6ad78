// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// renewalRetry is the delay after a failed renewal.
const renewalRetry = 30 * time.Second

// renewals has the times to replace the files of pods.
type renewals struct {
	mu  sync.Mutex
	due map[types.UID]time.Time // guarded by mu
}

// set records the time to replace the files of a pod; zero is never.
func (r *renewals) set(uid types.UID, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due == nil {
		r.due = map[types.UID]time.Time{}
	}
	r.due[uid] = at
}

// next returns the pod whose files must be replaced first, and the time, or nil. It forgets all pods that are not in the argument.
func (r *renewals) next(pods []*corev1.Pod, now time.Time) (first *corev1.Pod, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[types.UID]time.Time{}
	for _, pod := range pods {
		due, known := r.due[pod.UID]
		if !known && len(pod.Spec.Containers) > 0 {
			due, known = firstRenewal(pod, now), true
		}
		if known {
			all[pod.UID] = due
		}
		if !due.IsZero() && (first == nil || due.Before(at)) {
			first, at = pod, due
		}
	}
	r.due = all
	return first, at
}

// firstRenewal returns the time to replace the files of a pod from before a restart. This is after 1/20 to 3/20
// of the life of its tokens, because a fifth of the life is left, and spread over pods. It returns zero for a
// pod without tokens.
func firstRenewal(pod *corev1.Pod, now time.Time) time.Time {
	life := time.Duration(0)
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Projected == nil {
			continue
		}
		for _, s := range pod.Spec.Volumes[i].Projected.Sources {
			if s.ServiceAccountToken == nil {
				continue
			}
			one := time.Hour
			if seconds := s.ServiceAccountToken.ExpirationSeconds; seconds != nil {
				one = time.Duration(*seconds) * time.Second
			}
			if life == 0 || one < life {
				life = one
			}
		}
	}
	if life == 0 {
		return time.Time{}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(pod.UID)) // Write never fails
	return now.Add(life/20 + life/10*time.Duration(h.Sum32()%1000)/1000)
}

// renewEvery is the interval of checks for files to replace.
const renewEvery = 10 * time.Second

// run replaces files until ctx ends. renew replaces the files of a pod, and returns the time of the next
// renewal.
func (r *renewals) run(ctx context.Context, pods func() []*corev1.Pod, renew func(context.Context, *corev1.Pod) time.Time) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for ctx.Err() == nil {
			pod, at := r.next(pods(), time.Now())
			if pod == nil || at.After(time.Now()) {
				break
			}
			r.set(pod.UID, renew(ctx, pod))
		}
	}
}
