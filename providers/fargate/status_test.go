// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

var (
	created = time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
	began   = created.Add(30 * time.Second)
	over    = began.Add(time.Minute)
)

// testTask returns a task with a container, as ECS reports it.
func testTask(state string, k types.Container) types.Task {
	k.Name = aws.String("main")
	t := types.Task{
		TaskArn: aws.String("arn:task"), LastStatus: &state, DesiredStatus: aws.String("RUNNING"), CreatedAt: &created, Containers: []types.Container{k},
		Attachments: []types.Attachment{
			{Type: aws.String("Service Connect"), Details: []types.KeyValuePair{{Name: aws.String("privateIPv4Address"), Value: aws.String("10.9.9.9")}}},
			{Type: aws.String("ElasticNetworkInterface"), Details: []types.KeyValuePair{
				{Name: aws.String("privateIPv6Address"), Value: aws.String("fd00::1")}, {Name: aws.String("privateIPv4Address"), Value: aws.String("10.0.0.7")},
			}},
		},
	}
	if aws.ToString(k.LastStatus) != "PENDING" {
		t.StartedAt = &began
	}
	if state == stateStopped || state == stateDeleted {
		t.DesiredStatus, t.StoppedAt, t.ExecutionStoppedAt = aws.String("STOPPED"), &over, &over
	}
	return t
}

func statusOf(pod *corev1.Pod, t types.Task) corev1.PodStatus {
	return podstatus.Status(pod, observe(pod, t))
}

func onePod(policy corev1.RestartPolicy) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}}
}

// TestStates combines every state of a task with every state of its container, and with unknown states.
func TestStates(t *testing.T) {
	pending := types.Container{LastStatus: aws.String("PENDING")}
	running := types.Container{LastStatus: aws.String("RUNNING"), RuntimeId: aws.String("r")}
	strange := types.Container{LastStatus: aws.String("THAWING")}
	stopped := func(code int32) types.Container {
		return types.Container{LastStatus: aws.String("STOPPED"), RuntimeId: aws.String("r"), ExitCode: &code}
	}
	silent := types.Container{LastStatus: aws.String("STOPPED"), RuntimeId: aws.String("r")}
	never := types.Container{LastStatus: aws.String("STOPPED"), Reason: aws.String("CannotPullContainerError: no such image")}
	const exited = types.TaskStopCodeEssentialContainerExited
	codes := map[types.TaskStopCode]bool{}
	for _, test := range []struct {
		state     string
		container types.Container
		code      types.TaskStopCode
		phase     corev1.PodPhase
		reason    string
	}{
		{"PROVISIONING", pending, "", corev1.PodPending, ""},
		{"PENDING", pending, "", corev1.PodPending, ""},
		{"ACTIVATING", pending, "", corev1.PodPending, ""},
		{"ACTIVATING", running, "", corev1.PodRunning, ""},
		{"RUNNING", running, "", corev1.PodRunning, ""},
		{"RUNNING", strange, "", corev1.PodPending, ""},
		{"HOVERING", running, "", corev1.PodRunning, ""},
		{"HOVERING", pending, "", corev1.PodPending, ""},
		{"DEACTIVATING", running, "", corev1.PodRunning, ""},
		{"STOPPING", running, "", corev1.PodRunning, ""},
		{"DEPROVISIONING", pending, types.TaskStopCodeTaskFailedToStart, corev1.PodPending, ""},
		{"DEPROVISIONING", stopped(0), exited, corev1.PodSucceeded, ""},
		{"DEPROVISIONING", stopped(3), exited, corev1.PodFailed, ""},
		{"DEPROVISIONING", stopped(0), types.TaskStopCodeSpotInterruption, corev1.PodRunning, ""},
		{"DEPROVISIONING", stopped(0), types.TaskStopCodeUserInitiated, corev1.PodRunning, ""},
		{"STOPPING", stopped(3), types.TaskStopCodeTerminationNotice, corev1.PodRunning, ""},
		{"STOPPED", stopped(0), exited, corev1.PodSucceeded, ""},
		{"STOPPED", stopped(3), exited, corev1.PodFailed, ""},
		{"STOPPED", silent, exited, corev1.PodFailed, ""},
		{"STOPPED", running, exited, corev1.PodFailed, ""},
		{"STOPPED", pending, exited, corev1.PodFailed, ""},
		{"STOPPED", strange, exited, corev1.PodFailed, ""},
		{"STOPPED", never, types.TaskStopCodeTaskFailedToStart, corev1.PodFailed, "TaskFailedToStart"},
		{"STOPPED", stopped(0), "", corev1.PodSucceeded, ""},
		{"STOPPED", silent, "", corev1.PodFailed, ""},
		{"STOPPED", stopped(0), types.TaskStopCodeUserInitiated, corev1.PodFailed, "UserInitiated"},
		{"STOPPED", stopped(0), types.TaskStopCodeSpotInterruption, corev1.PodFailed, "SpotInterruption"},
		{"STOPPED", stopped(0), types.TaskStopCodeTerminationNotice, corev1.PodFailed, "TerminationNotice"},
		{"STOPPED", stopped(0), types.TaskStopCodeServiceSchedulerInitiated, corev1.PodFailed, "ServiceSchedulerInitiated"},
		{"STOPPED", stopped(0), types.TaskStopCodeInfrastructureHealth, corev1.PodFailed, "InfrastructureHealth"},
		{"STOPPED", stopped(0), "SomethingNew", corev1.PodFailed, "SomethingNew"},
		{"DELETED", stopped(0), exited, corev1.PodSucceeded, ""},
		{"DELETED", silent, exited, corev1.PodFailed, ""},
	} {
		codes[test.code] = true
		task := testTask(test.state, test.container)
		task.StopCode = test.code
		s := statusOf(onePod(corev1.RestartPolicyNever), task)
		if s.Phase != test.phase || s.Reason != test.reason || len(s.ContainerStatuses) != 1 {
			t.Errorf("%s, %s %v, %q: got %s %q, want %s %q", test.state, aws.ToString(test.container.LastStatus), test.container.ExitCode, test.code, s.Phase, s.Reason, test.phase, test.reason)
		}
	}
	for _, code := range types.TaskStopCode("").Values() {
		if !codes[code] {
			t.Errorf("the stop code %s of ECS is not in the table", code)
		}
	}
}

// TestCodesAreTheServices checks that a container without an exit code from ECS never gets an invented 0, and
// that a pod with such a container has failed.
func TestCodesAreTheServices(t *testing.T) {
	for _, state := range []string{"STOPPED", "DELETED"} {
		for _, code := range append(types.TaskStopCode("").Values(), "", "SomethingNew") {
			for _, k := range []types.Container{
				{LastStatus: aws.String("STOPPED"), RuntimeId: aws.String("r")}, {LastStatus: aws.String("STOPPED")}, {LastStatus: aws.String("PENDING")},
				{LastStatus: aws.String("RUNNING"), RuntimeId: aws.String("r")}, {LastStatus: aws.String("THAWING")}, {},
			} {
				task := testTask(state, k)
				task.StopCode = code
				s := statusOf(onePod(corev1.RestartPolicyNever), task)
				if e := s.ContainerStatuses[0].State.Terminated; s.Phase != corev1.PodFailed || e != nil && e.ExitCode == 0 {
					t.Errorf("%s, %q, %s: got %s with %+v", state, code, aws.ToString(k.LastStatus), s.Phase, e)
				}
			}
		}
	}
}

// TestWhatContainersSay checks that addresses, times, codes and reasons come from ECS.
func TestWhatContainersSay(t *testing.T) {
	pod := onePod(corev1.RestartPolicyNever)
	code := int32(137)
	s := statusOf(pod, testTask("STOPPED", types.Container{
		LastStatus: aws.String("STOPPED"), RuntimeId: aws.String("abc"), ExitCode: &code, Reason: aws.String("OutOfMemoryError: Container killed due to memory usage"),
		Image: aws.String("busybox:1"), ImageDigest: aws.String("sha256:1"),
	}))
	k := s.ContainerStatuses[0]
	if e := k.State.Terminated; e == nil || e.Reason != "OOMKilled" || e.ExitCode != 137 || !e.FinishedAt.Time.Equal(over) || e.ContainerID != "fargate://abc" {
		t.Errorf("got %+v", k.State)
	}
	if k.ImageID != "busybox:1@sha256:1" || s.PodIP != "10.0.0.7" || len(s.PodIPs) != 2 || s.HostIP != "" || !s.StartTime.Time.Equal(created) {
		t.Errorf("got %+v", s)
	}
	s = statusOf(pod, testTask("DEPROVISIONING", types.Container{LastStatus: aws.String("STOPPED"), Reason: aws.String("CannotPullContainerError: no such image")}))
	if w := s.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "ErrImagePull" || !strings.Contains(w.Message, "no such image") {
		t.Errorf("got %+v", s.ContainerStatuses[0].State)
	}
	s = statusOf(pod, testTask("RUNNING", types.Container{LastStatus: aws.String("THAWING")}))
	if w := s.ContainerStatuses[0].State.Waiting; w == nil || !strings.Contains(w.Message, "THAWING") {
		t.Errorf("got %+v", s.ContainerStatuses[0].State)
	}
}

// TestReadiness checks that a container with a probe is ready when ECS reports it as healthy, and a container
// without a probe when it runs.
func TestReadiness(t *testing.T) {
	probed := onePod(corev1.RestartPolicyAlways)
	probed.Spec.Containers[0].ReadinessProbe = &corev1.Probe{}
	for _, test := range []struct {
		pod    *corev1.Pod
		health types.HealthStatus
		ready  bool
	}{
		{probed, types.HealthStatusHealthy, true}, {probed, types.HealthStatusUnhealthy, false}, {probed, types.HealthStatusUnknown, false}, {probed, "", false},
		{onePod(corev1.RestartPolicyAlways), types.HealthStatusUnknown, true},
	} {
		s := statusOf(test.pod, testTask("RUNNING", types.Container{LastStatus: aws.String("RUNNING"), HealthStatus: test.health}))
		if s.ContainerStatuses[0].Ready != test.ready {
			t.Errorf("%q: ready is %t", test.health, s.ContainerStatuses[0].Ready)
		}
	}
}

// TestNotStartedAgain checks a pod that should run until it is deleted. The pod has failed if ECS does not restart it, whatever its
// exit code.
func TestNotStartedAgain(t *testing.T) {
	task := testTask("STOPPED", types.Container{LastStatus: aws.String("STOPPED"), ExitCode: new(int32)})
	task.StopCode, task.StoppedReason = types.TaskStopCodeEssentialContainerExited, aws.String("Essential container in task exited")
	for policy, want := range map[corev1.RestartPolicy]corev1.PodPhase{
		corev1.RestartPolicyAlways: corev1.PodFailed, corev1.RestartPolicyOnFailure: corev1.PodSucceeded, corev1.RestartPolicyNever: corev1.PodSucceeded,
	} {
		if s := statusOf(onePod(policy), task); s.Phase != want {
			t.Errorf("%s: got %s, want %s", policy, s.Phase, want)
		}
	}
}

// TestStoppedByTheNode checks that the phase of a deleted pod follows from the exit codes of its containers.
func TestStoppedByTheNode(t *testing.T) {
	pod := onePod(corev1.RestartPolicyNever)
	pod.DeletionTimestamp = &metav1.Time{Time: created}
	task := testTask("STOPPED", types.Container{LastStatus: aws.String("STOPPED"), ExitCode: new(int32)})
	task.StopCode, task.StoppedReason = types.TaskStopCodeUserInitiated, aws.String("pod deleted")
	if s := statusOf(pod, task); s.Phase != corev1.PodSucceeded || s.Message != "pod deleted" {
		t.Errorf("got %s %q", s.Phase, s.Message)
	}
}
