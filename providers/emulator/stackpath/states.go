// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// shown returns a workload as the service shows it, without secret values.
func (w *workload) shown(stack string) object {
	metadata := object{"labels": w.labels, "createdAt": stamp(w.created), "updatedAt": stamp(w.created), "version": "1", "deleteRequestedAt": nil}
	if !w.deleted.IsZero() {
		metadata["deleteRequestedAt"] = stamp(w.deleted)
	}
	out := object{"stackId": stack, "id": w.id, "slug": w.slug, "name": w.sent["name"], "metadata": metadata, "targets": w.sent["targets"], "status": "ACTIVE"}
	if spec, is := w.sent["spec"].(object); is {
		out["spec"] = object{"networkInterfaces": spec["networkInterfaces"], "runtime": spec["runtime"]}
	}
	return out
}

// nameOf returns the name of the instance of a workload: its slug, target, city and number, in small letters.
func (s *Server) nameOf(w *workload) string {
	return strings.ToLower(w.slug + "-node-" + s.Cities[0] + "-0")
}

// instance returns the instance of a workload as the service shows it.
func (s *Server) instance(w *workload, seen emulator.Seen) object {
	phase := "SCHEDULING"
	switch running := seen.Status.Phase == corev1.PodRunning; {
	case !w.deleted.IsZero():
		phase = "DELETING"
	case running:
		phase = "RUNNING"
	case seen.Status.Phase == corev1.PodPending:
		phase = "STARTING"
	case seen.Status.Phase == corev1.PodFailed:
		phase = "FAILED"
	case seen.Status.Phase == corev1.PodSucceeded:
		phase = "COMPLETED"
	}
	out := object{
		"stackId": s.Stack, "workloadId": w.id, "id": "i-" + w.id, "name": s.nameOf(w), "phase": phase, "createdAt": stamp(w.created), "location": object{"cityCode": s.Cities[0]},
		"ipAddress": seen.Status.PodIP, "ipv6Address": "", "reason": seen.Status.Reason, "message": seen.Status.Message,
		"containerStatuses": statuses(seen.Status.ContainerStatuses), "initContainerStatuses": statuses(seen.Status.InitContainerStatuses),
	}
	if t := seen.Status.StartTime; t != nil {
		out["startedAt"] = stamp(t.Time)
	}
	return out
}

func statuses(all []corev1.ContainerStatus) []object {
	out := []object{}
	for i := range all {
		c := &all[i]
		one := object{"name": c.Name, "ready": c.Ready, "restartCount": c.RestartCount, "containerId": c.ContainerID, "phase": "STARTING"}
		switch {
		case c.State.Running != nil:
			one["phase"], one["running"] = "RUNNING", object{"startedAt": stamp(c.State.Running.StartedAt.Time)}
		case c.State.Terminated != nil:
			t := c.State.Terminated
			one["phase"] = "STOPPED"
			if t.ExitCode != 0 {
				one["phase"] = "FAILED"
			}
			one["terminated"] = object{"exitCode": t.ExitCode, "reason": t.Reason, "message": t.Message, "startedAt": stamp(t.StartedAt.Time), "finishedAt": stamp(t.FinishedAt.Time)}
		case c.State.Waiting != nil:
			one["waiting"] = object{"reason": c.State.Waiting.Reason, "message": c.State.Waiting.Message}
		}
		out = append(out, one)
	}
	return out
}

// stamp writes a time as the service does, or nothing for the zero time.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339Nano)
}
