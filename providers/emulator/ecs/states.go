// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// grown is the time for which a task without containers waits for the last report about them.
const grown = 3 * time.Second

// Report handles a report of the runner. Pass it to the runner's NotifyPods.
func (s *Server) Report(pod *corev1.Pod) {
	s.fleet.Report(pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	id, isLate := strings.CutSuffix(pod.Name, lateSuffix)
	if t := s.tasks[id]; t != nil {
		if isLate {
			t.late.status = *pod.Status.DeepCopy()
		} else {
			t.status = *pod.Status.DeepCopy()
		}
		s.pumpLogs(t)
		s.settleTask(t)
		s.sendState(t)
	}
}

// containerStatus returns the status of a container, or nil if it is unknown.
func (t *task) containerStatus(name string) *corev1.ContainerStatus {
	lists := [][]corev1.ContainerStatus{t.status.InitContainerStatuses, t.status.ContainerStatuses}
	if t.late != nil {
		lists = append(lists, t.late.status.ContainerStatuses)
	}
	for _, list := range lists {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// containerEnd returns how the container ended for good, or nil while it runs or is about to run.
func (t *task) containerEnd(c containerDefinition) *corev1.ContainerStateTerminated {
	k := t.containerStatus(c.Name)
	switch {
	case k == nil:
		return nil
	case k.State.Terminated != nil:
		return k.State.Terminated
	case c.RestartPolicy == nil && k.LastTerminationState.Terminated != nil: // the runner starts the container again, but the service does not
		return k.LastTerminationState.Terminated
	case !t.stopping.IsZero() && k.State.Running == nil && k.LastTerminationState.Terminated != nil:
		return k.LastTerminationState.Terminated
	}
	return nil
}

// hasBegun reports whether a container has run.
func (t *task) hasBegun(c containerDefinition) bool {
	k := t.containerStatus(c.Name)
	return k != nil && (k.State.Running != nil || k.State.Terminated != nil || k.LastTerminationState.Terminated != nil)
}

// startError is the reason of a container that the runner could not start.
const startError = "StartError"

// settleTask updates the state of a task from the states of its containers. The caller holds s.mu.
func (s *Server) settleTask(t *task) {
	if !t.stopped.IsZero() {
		return
	}
	began, over, running := true, true, 0
	for _, c := range t.definition.ContainerDefinitions {
		began = began && t.hasBegun(c)
		end := t.containerEnd(c)
		if k := t.containerStatus(c.Name); k != nil && k.State.Running != nil {
			running++
		}
		over = over && (end != nil || !t.hasBegun(c))
		switch {
		case end == nil:
		case c.isEssential() && end.Reason == startError:
			s.haltTask(t, "TaskFailedToStart", "Task failed to start")
		case c.isEssential():
			s.haltTask(t, "EssentialContainerExited", "Essential container in task exited")
		case end.ExitCode != 0 && t.waitedFor(c.Name):
			s.haltTask(t, "TaskFailedToStart", fmt.Sprintf("Container %s exited with %d, and others wait for its success", c.Name, end.ExitCode))
		}
	}
	if began && t.started.IsZero() {
		t.started = time.Now()
	}
	if t.pulled.IsZero() && t.anyBegan() {
		t.pulled = time.Now()
	}
	s.startLate(t)
	if t.stopping.IsZero() {
		return
	}
	if t.gone.IsZero() && s.isGone(t) {
		t.gone = time.Now()
	}
	quiet := !slices.ContainsFunc(t.logPumps(), func(done chan struct{}) bool {
		select {
		case <-done:
			return false
		default:
			return true
		}
	})
	late := !t.gone.IsZero() && time.Since(t.gone) > grown
	if over && running == 0 && quiet && (t.anyBegan() || !t.gone.IsZero()) || late {
		t.stopped = time.Now()
		t.definition.users--
	}
}

func (t *task) logPumps() (all []chan struct{}) {
	for _, done := range t.pumps {
		all = append(all, done)
	}
	return all
}

func (t *task) anyBegan() bool {
	return slices.ContainsFunc(t.definition.ContainerDefinitions, t.hasBegun)
}

// waitedFor reports whether another container waits for the success of the named container.
func (t *task) waitedFor(name string) bool {
	return slices.ContainsFunc(t.definition.ContainerDefinitions, func(c containerDefinition) bool {
		return slices.ContainsFunc(c.DependsOn, func(d struct{ ContainerName, Condition string }) bool {
			return d.ContainerName == name && d.Condition == "SUCCESS"
		})
	})
}

// startLate runs the containers that wait for others, after these have ended. The caller holds s.mu.
func (s *Server) startLate(t *task) {
	if t.late == nil || t.late.began || !t.stopping.IsZero() {
		return
	}
	for _, c := range t.definition.ContainerDefinitions {
		if slices.Contains(t.late.after, c.Name) && t.containerEnd(c) == nil {
			return
		}
	}
	t.late.began = true
	group := emulator.Group{ID: t.id + lateSuffix, Spec: t.late.spec}
	go func() { // the runner may report at once
		err := s.fleet.Start(s.ctx, group)
		s.mu.Lock()
		stopping := !t.stopping.IsZero()
		if err != nil {
			s.haltTask(t, "TaskFailedToStart", "ResourceInitializationError: "+err.Error())
		}
		s.mu.Unlock()
		if err == nil && stopping {
			_ = s.fleet.Stop(s.ctx, group.ID, 0) // the group may have ended
		}
	}()
}

// isGone reports whether no container of a task runs any more. The caller holds s.mu.
func (s *Server) isGone(t *task) bool {
	ids := []string{t.id}
	if t.late != nil && t.late.began {
		ids = append(ids, t.id+lateSuffix)
	}
	for _, id := range ids {
		if seen, err := s.fleet.Get(s.ctx, id); !errdefs.IsNotFound(err) && (err != nil || !seen.Gone) {
			return false
		}
	}
	return true
}

// haltTask stops a task. The first reason is kept. The caller holds s.mu.
func (s *Server) haltTask(t *task, code, reason string) {
	if !t.stopping.IsZero() {
		return
	}
	t.stopping, t.stopCode, t.reason = time.Now(), code, reason
	grace := int64(0)
	for _, c := range t.definition.ContainerDefinitions {
		if c.StopTimeout != nil {
			grace = max(grace, int64(*c.StopTimeout))
		}
	}
	go func() { // the runner may report at once
		for _, done := range s.pumpsOf(t) { // the log of an ended container is read to its end before the container is removed
			select {
			case <-done:
			case <-time.After(grown):
			case <-s.ctx.Done():
				return
			}
			if code == "UserInitiated" {
				break
			}
		}
		for _, id := range []string{t.id, t.id + lateSuffix} {
			_ = s.fleet.Stop(s.ctx, id, grace) // the group may be gone, or may never have existed
		}
	}()
}

func (s *Server) pumpsOf(t *task) []chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.stopCode == "UserInitiated" {
		return nil
	}
	return t.logPumps()
}

// showTask returns a task as the service shows it. The caller holds s.mu.
func (s *Server) showTask(t *task, tags bool) map[string]any {
	at := func(when time.Time) any {
		if when.IsZero() {
			return nil
		}
		return float64(when.UnixMilli()) / 1000
	}
	state, desired := "PROVISIONING", "RUNNING"
	switch {
	case !t.stopped.IsZero():
		state = "STOPPED"
	case !t.stopping.IsZero() && !t.gone.IsZero():
		state = "DEPROVISIONING"
	case !t.stopping.IsZero():
		state = "STOPPING"
	case !t.started.IsZero():
		state = "RUNNING"
	case t.status.Phase != "":
		state = "PENDING"
	}
	out := map[string]any{
		"taskArn": t.arn, "clusterArn": s.arnOf("ecs", "cluster/"+t.cluster), "taskDefinitionArn": t.definition.arn, "lastStatus": state, "launchType": "FARGATE",
		"cpu": t.definition.CPU, "memory": t.definition.Memory, "startedBy": t.startedBy, "group": t.group, "enableExecuteCommand": t.exec, "createdAt": at(t.created),
	}
	if !t.stopping.IsZero() {
		desired = "STOPPED"
		out["stopCode"], out["stoppedReason"], out["stoppingAt"] = t.stopCode, t.reason, at(t.stopping)
	}
	out["desiredStatus"] = desired
	for name, when := range map[string]time.Time{"startedAt": t.started, "stoppedAt": t.stopped, "executionStoppedAt": t.stopped, "pullStoppedAt": t.pulled} {
		if !when.IsZero() {
			out[name] = at(when)
		}
	}
	if t.provider != "" {
		out["capacityProviderName"] = t.provider
	}
	if tags {
		out["tags"] = []any{}
		if !t.untagged && t.tags != nil {
			out["tags"] = t.tags
		}
	}
	ip := t.status.PodIP
	if ip == "" && !t.started.IsZero() {
		ip = "10.0.0.1"
	}
	if ip != "" {
		out["attachments"] = []any{map[string]any{"type": "ElasticNetworkInterface", "status": "ATTACHED", "details": []any{map[string]string{"name": "privateIPv4Address", "value": ip}}}}
	}
	containers := []any{}
	for _, c := range t.definition.ContainerDefinitions {
		containers = append(containers, s.showContainer(t, c))
	}
	out["containers"] = containers
	return out
}

func (s *Server) showContainer(t *task, c containerDefinition) map[string]any {
	k, end := t.containerStatus(c.Name), t.containerEnd(c)
	out := map[string]any{"name": c.Name, "image": c.Image, "taskArn": t.arn, "lastStatus": "PENDING", "healthStatus": "UNKNOWN"}
	if t.hasBegun(c) {
		sum := sha256.Sum256([]byte(t.id + c.Name))
		out["runtimeId"] = t.id + "-" + hex.EncodeToString(sum[:5])
		out["lastStatus"] = "RUNNING"
		if c.HealthCheck != nil {
			out["healthStatus"] = map[bool]string{true: "HEALTHY", false: "UNHEALTHY"}[k.Ready]
		}
	}
	switch {
	case end != nil && end.Reason == startError:
		out["lastStatus"], out["reason"] = "STOPPED", "CannotStartContainerError: ResourceInitializationError: failed to create new container runtime task: "+end.Message
		delete(out, "runtimeId")
	case end != nil:
		out["lastStatus"], out["exitCode"] = "STOPPED", end.ExitCode
		if end.Reason == "OOMKilled" {
			out["reason"] = "OutOfMemoryError: Container killed due to memory usage"
		}
	case !t.stopped.IsZero():
		out["lastStatus"] = "STOPPED"
	}
	return out
}
