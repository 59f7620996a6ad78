// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
)

// probeContainers passes the containers to the prober, and stores its results.
func (w *worker) probeContainers() {
	w.mem.Probes = nil
	if !w.full {
		return
	}
	for i := range w.seen.observed.Containers {
		c := &w.seen.observed.Containers[i]
		if w.mem.Starting(c.Name) {
			continue // the postStart hook has not ended: a kubelet does not treat the container as running yet
		}
		spec := containerNamed(w.pod, c.Name)
		if spec == nil || c.State != plan.Running || spec.StartupProbe == nil && spec.LivenessProbe == nil && spec.ReadinessProbe == nil {
			w.exec.prober.Forget(c.ID)
			continue
		}
		w.exec.prober.Ensure(probe.Target{
			Pod: w.pod, Container: spec, ID: c.ID, PodIPs: w.podAddresses(), StartedAt: c.StartedAt, Running: true, Terminating: w.mem.Deleted(),
		})
		if result, known := w.exec.prober.Result(c.ID); known {
			if w.mem.Probes == nil {
				w.mem.Probes = map[string]plan.Probe{}
			}
			w.mem.Probes[c.ID] = convertResult(result)
		}
	}
}

// convertResult converts the results of a container's probes.
func convertResult(r probe.Result) plan.Probe {
	out := plan.Probe{Readiness: plan.Failure}
	if r.Ready {
		out.Readiness = plan.Success
	}
	if r.Started {
		out.Startup = plan.Success
	}
	switch r.Failed {
	case probe.Startup:
		out.Startup = plan.Failure
	case probe.Liveness:
		out.Liveness = plan.Failure
	}
	return out
}

// podAddresses returns the addresses of the pod.
func (w *worker) podAddresses() []string {
	if w.pod.Spec.HostNetwork {
		return w.seen.observed.HostIPs
	}
	if s := w.seen.newestSandbox(); s != nil {
		return s.IPs
	}
	return nil
}

// probeTarget returns the probe target for the instance of an action.
func (j job) probeTarget() (probe.Target, bool) {
	if j.target == nil {
		return probe.Target{}, false
	}
	c := containerNamed(j.pod, j.target.seen.Name)
	if c == nil {
		return probe.Target{}, false
	}
	return probe.Target{
		Pod: j.pod, Container: c, ID: j.target.seen.ID, PodIPs: j.podIPs(), StartedAt: j.target.seen.StartedAt, Running: true, Terminating: true,
	}, true
}
