// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// probeRun probes a run until it ends.
func (k *container) probeRun(r *run) {
	if !k.runProbe(r, k.spec.StartupProbe, func(ok bool) (done bool) {
		if ok {
			k.markChange(func() { k.started, k.ready = true, k.spec.ReadinessProbe == nil })
		}
		return ok
	}) {
		return
	}
	var wait sync.WaitGroup
	wait.Go(func() { k.runProbe(r, k.spec.LivenessProbe, func(bool) bool { return false }) })
	wait.Go(func() {
		k.runProbe(r, k.spec.ReadinessProbe, func(ok bool) bool {
			k.pod.cloud.mu.Lock()
			changed := k.ready != ok
			k.pod.cloud.mu.Unlock()
			if changed {
				k.markChange(func() { k.ready = ok })
			}
			return false
		})
	})
	wait.Wait()
}

// runProbe runs the probe until told returns that it is done, and reports whether the run still lives. When a
// startup or liveness probe fails too often, it kills the run.
func (k *container) runProbe(r *run, p *corev1.Probe, told func(ok bool) (done bool)) bool {
	if p == nil || p.Exec == nil {
		return true
	}
	period := time.Duration(max(p.PeriodSeconds, 1)) * time.Second
	failures := int32(0)
	timer := time.NewTimer(time.Duration(p.InitialDelaySeconds) * time.Second)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			return false
		}
		ctx, cancel := context.WithTimeout(r.ctx, period)
		code, err := k.runCommand(ctx, r, p.Exec.Command, nil)
		cancel()
		ok := err == nil && code == 0
		if failures++; ok {
			failures = 0
		}
		if r.ctx.Err() != nil {
			return false
		}
		if told(ok) {
			return true
		}
		if p != k.spec.ReadinessProbe && failures >= max(p.FailureThreshold, 1) {
			r.askStop()
			kill := time.AfterFunc(time.Second, r.kill)
			defer kill.Stop()
			<-r.ctx.Done()
			return false
		}
		timer.Reset(period)
	}
}
