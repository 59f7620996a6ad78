// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"testing"
	"time"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// seenGroup returns a group in the given states, with one container. "" means no state.
func seenGroup(provisioning, state string, now *aci.ContainerState) *aci.ContainerGroup {
	p := &aci.ContainerGroupPropertiesProperties{ProvisioningState: &provisioning}
	if state != "" {
		p.InstanceView = &aci.ContainerGroupPropertiesInstanceView{State: &state}
	}
	c := &aci.ContainerProperties{}
	if now != nil {
		c.InstanceView = &aci.ContainerPropertiesInstanceView{CurrentState: now}
	}
	p.Containers = []*aci.Container{{Name: new("main"), Properties: c}}
	return &aci.ContainerGroup{Name: new("vk-1"), Properties: p}
}

func containerState(state string, code *int32) *aci.ContainerState {
	return &aci.ContainerState{State: &state, ExitCode: code, StartTime: new(noon)}
}

func onePod(policy corev1.RestartPolicy) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}}
}

func TestEveryState(t *testing.T) {
	runs, done, failed := containerState("Running", nil), containerState("Terminated", new(int32(0))), containerState("Terminated", new(int32(3)))
	for _, c := range []struct {
		provisioning, state string
		container           *aci.ContainerState
		phase               corev1.PodPhase
		reason              string
		ready               bool
	}{
		{"Accepted", "", nil, corev1.PodPending, "", false},
		{"Pending", "", nil, corev1.PodPending, "", false},
		{"Creating", "", nil, corev1.PodPending, "", false},
		{"PreProvisioned", "", nil, corev1.PodPending, "", false},
		{"NotSpecified", "", nil, corev1.PodPending, "", false},
		{"", "", nil, corev1.PodPending, "", false},
		{"Succeeded", "", nil, corev1.PodPending, "", false},
		{"Succeeded", "Pending", containerState("Waiting", nil), corev1.PodPending, "", false},
		{"Succeeded", "Running", runs, corev1.PodRunning, "", true},
		{"Repairing", "", runs, corev1.PodRunning, "", true},
		{"Updating", "", runs, corev1.PodRunning, "", true},
		{"Succeeded", "Unhealthy", runs, corev1.PodRunning, "", false},
		{"Succeeded", "NotAccessible", runs, corev1.PodRunning, "", false},
		{"Unhealthy", "", runs, corev1.PodRunning, "", false},
		{"NotAccessible", "", runs, corev1.PodRunning, "", false},
		{"Succeeded", "Stopping", runs, corev1.PodRunning, "", true},
		{"Deleting", "", runs, corev1.PodRunning, "", true},
		{"Succeeded", "of another year", runs, corev1.PodRunning, "", true},
		{"of another year", "", runs, corev1.PodRunning, "", true},
		{"Succeeded", "Succeeded", done, corev1.PodSucceeded, "", false},
		{"Succeeded", "Succeeded", containerState("Terminated", nil), corev1.PodFailed, "", false}, // the exit code is unknown
		{"Succeeded", "Failed", failed, corev1.PodFailed, "", false},
		{"Succeeded", "Failed", nil, corev1.PodFailed, reasonFailed, false},
		{"Succeeded", "Failed", done, corev1.PodFailed, reasonFailed, false},
		{"Failed", "", nil, corev1.PodFailed, reasonFailed, false},
		{"Canceled", "", nil, corev1.PodFailed, reasonCanceled, false},
		{"Succeeded", "Stopped", done, corev1.PodSucceeded, reasonStopped, false},
		{"Succeeded", "Stopped", failed, corev1.PodFailed, reasonStopped, false},
		{"Succeeded", "Terminated", done, corev1.PodSucceeded, reasonStopped, false},
		{"Succeeded", "Terminated", runs, corev1.PodFailed, reasonStopped, false},
	} {
		t.Run(c.provisioning+"/"+c.state, func(t *testing.T) {
			s := podstatus.Status(onePod(corev1.RestartPolicyNever), observe(seenGroup(c.provisioning, c.state, c.container), noon))
			if s.Phase != c.phase || s.Reason != c.reason || s.ContainerStatuses[0].Ready != c.ready {
				t.Errorf("got %s, %q, ready %t, want %s, %q, ready %t", s.Phase, s.Reason, s.ContainerStatuses[0].Ready, c.phase, c.reason, c.ready)
			}
			if end := s.ContainerStatuses[0].State.Terminated; end != nil && c.container.ExitCode == nil {
				t.Errorf("the exit code %d is invented", end.ExitCode)
			}
		})
	}
}

func TestStatesOfContainers(t *testing.T) {
	for _, c := range []struct {
		state, detail string
		code          *int32
		waits, reason string
		ends          bool
	}{
		{state: "Waiting", waits: "ContainerCreating"},
		{state: "Waiting", detail: "CrashLoopBackOff", waits: "CrashLoopBackOff"},
		{state: "Waiting", detail: "back-off pulling image", waits: "Waiting"},
		{state: "Pending", waits: "ContainerCreating"},
		{state: "of another year", waits: "ContainerCreating"},
		{state: "Terminated", detail: "Completed", code: new(int32(0)), ends: true, reason: "Completed"},
		{state: "Terminated", detail: "Error", code: new(int32(4)), ends: true, reason: "Error"},
		{state: "Terminated", detail: "OOMKilled", code: new(int32(137)), ends: true, reason: "OOMKilled"},
		{state: "Failed", code: new(int32(4)), ends: true, reason: "Error"},
	} {
		t.Run(c.state+"/"+c.detail, func(t *testing.T) {
			now := containerState(c.state, c.code)
			now.DetailStatus = &c.detail
			s := podstatus.Status(onePod(corev1.RestartPolicyNever), observe(seenGroup("Succeeded", "Running", now), noon)).ContainerStatuses[0].State
			switch {
			case c.ends && (s.Terminated == nil || s.Terminated.ExitCode != *c.code || s.Terminated.Reason != c.reason):
				t.Errorf("got %+v", s)
			case !c.ends && (s.Waiting == nil || s.Waiting.Reason != c.waits):
				t.Errorf("got %+v, want it to wait for %s", s, c.waits)
			}
		})
	}
}

func TestReadiness(t *testing.T) {
	probe := &aci.ContainerProbe{PeriodSeconds: new(int32(5)), TimeoutSeconds: new(int32(1))}
	failed := func(ago time.Duration) []*aci.Event {
		return []*aci.Event{{Type: new("Warning"), Message: new("Readiness probe failed: no"), LastTimestamp: new(noon.Add(-ago))}}
	}
	for name, c := range map[string]struct {
		events []*aci.Event
		since  time.Duration
		want   bool
	}{
		"not probed yet":      {nil, time.Second, false},
		"never failed":        {nil, time.Minute, true},
		"failed now":          {failed(time.Second), time.Minute, false},
		"failed before":       {failed(30 * time.Second), time.Minute, true},
		"another probe fails": {[]*aci.Event{{Message: new("Liveness probe failed"), LastTimestamp: new(noon)}}, time.Minute, true},
	} {
		if got := ready(c.events, probe, noon.Add(-c.since), noon); got != c.want {
			t.Errorf("%s: ready is %t", name, got)
		}
	}
}
