// SPDX-License-Identifier: Apache-2.0

package podstatus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/podstatus"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

func always() *corev1.ContainerRestartPolicy {
	p := corev1.ContainerRestartPolicyAlways
	return &p
}

// world has a pod, its state in the runtime, and the memory of its worker.
type world struct {
	pod  corev1.Pod
	seen plan.Observed
	mem  plan.Memory
}

func newWorld(policy corev1.RestartPolicy, mains ...string) *world {
	w := &world{
		seen: plan.Observed{
			Runtime: "containerd", HostIPs: []string{"192.168.0.1"},
			Sandboxes: []plan.Sandbox{{ID: "box", Ready: true, CreatedAt: epoch, IPs: []string{"fd00::1", "10.0.0.1"}}},
		},
		mem: plan.Memory{StartTime: epoch},
	}
	w.pod.Namespace, w.pod.Name, w.pod.UID = "ns", "pod", "uid"
	w.pod.Spec.RestartPolicy = policy
	for _, name := range mains {
		w.pod.Spec.Containers = append(w.pod.Spec.Containers, corev1.Container{Name: name, Image: "image:1"})
	}
	return w
}

// runs adds a running instance.
func (w *world) runs(name string, attempt uint32) *world {
	w.seen.Containers = append(w.seen.Containers, plan.Container{
		ID: fmt.Sprintf("%s%d", name, attempt), Name: name, Attempt: attempt, SandboxID: "box", State: plan.Running,
		CreatedAt: at(int(attempt) * 10), StartedAt: at(int(attempt) * 10), Image: "docker.io/image:1", ImageRef: "image@sha256:0",
	})
	return w
}

// exits adds an exited instance.
func (w *world) exits(name string, attempt uint32, code int32, reason string) *world {
	w.runs(name, attempt)
	c := &w.seen.Containers[len(w.seen.Containers)-1]
	c.State, c.ExitCode, c.Reason, c.FinishedAt = plan.Exited, code, reason, at(int(attempt)*10+5)
	return w
}

// finish ends the pod.
func (w *world) finish() *world {
	w.mem.End(plan.Action{Kind: plan.Finish}, plan.Outcome{}, at(100))
	return w
}

func (w *world) status() corev1.PodStatus { return podstatus.Status(&w.pod, w.seen, &w.mem, at(60)) }

// line returns a container status as one line of text.
func line(s corev1.ContainerStatus) string {
	text := s.Name + " " + state(s.State)
	if last := state(s.LastTerminationState); last != "" {
		text += " after " + last
	}
	if s.RestartCount > 0 {
		text += fmt.Sprintf(" restarts=%d", s.RestartCount)
	}
	if s.Started != nil && *s.Started {
		text += " started"
	}
	if s.Ready {
		text += " ready"
	}
	return text
}

func state(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Waiting != nil:
		return "waiting:" + s.Waiting.Reason
	case s.Terminated != nil:
		return fmt.Sprintf("terminated:%d:%s", s.Terminated.ExitCode, s.Terminated.Reason)
	}
	return ""
}

// summary returns the phase, and a line for each container and condition.
func summary(s corev1.PodStatus) string {
	lines := []string{string(s.Phase)}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for _, c := range list {
			lines = append(lines, line(c))
		}
	}
	return strings.Join(lines, "; ")
}

func (w *world) want(t *testing.T, want string) {
	t.Helper()
	if diff := cmp.Diff(want, summary(w.status())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestContainerIsShownInFull(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a").exits("a", 0, 1, "OOMKilled").runs("a", 1)
	spec := &w.pod.Spec.Containers[0]
	spec.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
	recursive := corev1.RecursiveReadOnlyIfPossible
	spec.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}, {Name: "r", MountPath: "/r", ReadOnly: true, RecursiveReadOnly: &recursive}}
	i := &w.seen.Containers[1]
	signal := corev1.SIGUSR1
	i.StopSignal = &signal
	i.User = &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: 1, GID: 2, SupplementalGroups: []int64{2, 3}}}
	i.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}}
	started, disabled := true, corev1.RecursiveReadOnlyDisabled
	want := corev1.ContainerStatus{
		Name: "a", RestartCount: 1, Ready: true, Started: &started,
		Image: "docker.io/image:1", ImageID: "image@sha256:0", ContainerID: "containerd://a1",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: at(10)}}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "OOMKilled", ContainerID: "containerd://a0", StartedAt: metav1.Time{Time: at(0)}, FinishedAt: metav1.Time{Time: at(5)},
		}},
		AllocatedResources: spec.Resources.Requests,
		Resources: &corev1.ResourceRequirements{
			Requests: spec.Resources.Requests,
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("2Gi")},
		},
		VolumeMounts: []corev1.VolumeMountStatus{{Name: "v", MountPath: "/v"}, {Name: "r", MountPath: "/r", ReadOnly: true, RecursiveReadOnly: &disabled}},
		User:         i.User, StopSignal: &signal,
	}
	if diff := cmp.Diff(want, w.status().ContainerStatuses[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.seen.RecursiveReadOnly = true
	if got := *w.status().ContainerStatuses[0].VolumeMounts[1].RecursiveReadOnly; got != corev1.RecursiveReadOnlyEnabled {
		t.Errorf("recursiveReadOnly %s with a runtime that can, want Enabled", got)
	}
}

func TestAddressesAreSortedByTheFamilyOfTheNode(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a")
	check := func(why, want string) {
		t.Helper()
		s := w.status()
		if got := fmt.Sprint(s.PodIP, s.PodIPs, s.HostIP, s.HostIPs); got != want {
			t.Errorf("%s: got %s, want %s", why, got, want)
		}
	}
	check("IPv4", "10.0.0.1[{10.0.0.1} {fd00::1}]192.168.0.1[{192.168.0.1}]")
	w.seen.HostIPs = []string{"fd00::2"}
	check("IPv6", "fd00::1[{fd00::1} {10.0.0.1}]fd00::2[{fd00::2}]")
	w.pod.Spec.HostNetwork = true
	check("host network", "fd00::2[{fd00::2}]fd00::2[{fd00::2}]")
	w.pod.Spec.HostNetwork, w.seen.Sandboxes[0].Ready = false, false
	w.pod.Status = corev1.PodStatus{PodIP: "10.0.0.9", PodIPs: []corev1.PodIP{{IP: "10.0.0.9"}}}
	check("stopped", "10.0.0.9[{10.0.0.9}]fd00::2[{fd00::2}]")
}

func TestContainersWaitUntilTheyAreCreated(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a")
	w.want(t, "Pending; a waiting:ContainerCreating")
	if started := w.status().ContainerStatuses[0].Started; started == nil || *started {
		t.Error("a container that does not exist must say that it has not started")
	}
	w = newWorld(corev1.RestartPolicyAlways, "a")
	w.pod.Spec.InitContainers = []corev1.Container{{Name: "i"}}
	w.want(t, "Pending; i waiting:PodInitializing; a waiting:PodInitializing")
	w.runs("i", 0).want(t, "Pending; i running started; a waiting:PodInitializing")
}

func TestContainerWhosePostStartHookRunsIsNotRunningYet(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a").runs("a", 0)
	w.pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{}}
	start := plan.Action{Kind: plan.Start, Container: "a"}
	w.mem.Begin(start, at(0))
	w.want(t, "Pending; a waiting:ContainerCreating")
	w.mem.End(start, plan.Outcome{ID: "a0"}, at(1))
	w.want(t, "Running; a running started ready")
}

func TestReasonWhyAContainerCannotStartIsShown(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a")
	start := plan.Action{Kind: plan.Start, Container: "a"}
	for _, reason := range []string{"ErrImagePull", "ImagePullBackOff", "CreateContainerConfigError"} {
		w.mem.Begin(start, at(0))
		w.mem.End(start, plan.Outcome{Reason: reason, Message: "why"}, at(1))
		w.want(t, "Pending; a waiting:"+reason)
		if got := w.status().ContainerStatuses[0].State.Waiting.Message; got != "why" {
			t.Errorf("message %q", got)
		}
	}
}

func TestEndOfAContainerThatWaitsIsItsLastState(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a").exits("a", 0, 1, "").exits("a", 1, 2, "")
	w.want(t, "Running; a terminated:2:Error after terminated:1:Error restarts=1")
	for _, a := range plan.Next(&w.pod, w.seen, &w.mem, at(16)).Actions {
		w.mem.Begin(a, at(16))
		w.mem.End(a, plan.Outcome{Reason: "ErrImagePull"}, at(16))
	}
	w.mem.Begin(plan.Action{Kind: plan.Start, Container: "a"}, at(17))
	w.mem.End(plan.Action{Kind: plan.Start, Container: "a"}, plan.Outcome{Reason: "RunContainerError"}, at(17))
	w.want(t, "Running; a waiting:RunContainerError after terminated:2:Error restarts=1")
}

// TestPublishedB1EndOfAReplacedContainerIsItsLastState: when an image or a failed probe replaces a container,
// its end appears only as its last state. In a pod that never restarts, the API server would not take back an
// end (tektoncd/pipeline: cmd/nop/README.md changes images of sidecars).
func TestPublishedB1EndOfAReplacedContainerIsItsLastState(t *testing.T) {
	image := func(w *world) { w.pod.Spec.Containers[0].Image = "nop" }
	probe := func(w *world) {
		w.pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{}
		w.mem.Probes = map[string]plan.Probe{"a0": {Liveness: plan.Failure}}
	}
	for name, tt := range map[string]struct {
		policy corev1.RestartPolicy
		change func(*world) // the change that replaces the container
	}{
		"another image, Never":        {corev1.RestartPolicyNever, image},
		"another image, OnFailure":    {corev1.RestartPolicyOnFailure, image},
		"a liveness probe has failed": {corev1.RestartPolicyOnFailure, probe},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tt.policy, "a").runs("a", 0)
			w.seen.Containers[0].Hash = plan.Hash(&w.pod.Spec.Containers[0])
			tt.change(w)
			for _, a := range plan.Next(&w.pod, w.seen, &w.mem, at(3)).Actions {
				w.mem.Begin(a, at(3))
			}
			w.seen.Containers = nil
			w.exits("a", 0, 0, "").want(t, "Running; a waiting:ContainerCreating after terminated:0:Completed")
			w.runs("a", 1).want(t, "Running; a running after terminated:0:Completed restarts=1 started ready")
			w.mem.Delete(0, at(50))
			w.seen.Containers = w.seen.Containers[:1]
			w.want(t, "Running; a terminated:0:Completed") // nothing follows it
		})
	}
	newWorld(corev1.RestartPolicyNever, "a", "b").exits("a", 0, 0, "").runs("b", 0).want(t, "Running; a terminated:0:Completed; b running started ready")
}

func TestPhaseIsTerminalWhenThePodHasEnded(t *testing.T) {
	w := newWorld(corev1.RestartPolicyNever, "a", "b").exits("a", 0, 0, "").runs("b", 0)
	w.want(t, "Running; a terminated:0:Completed; b running started ready")
	w = newWorld(corev1.RestartPolicyNever, "a", "b").exits("a", 0, 0, "").exits("b", 0, 1, "")
	w.want(t, "Running; a terminated:0:Completed; b terminated:1:Error")
	w.finish().want(t, "Failed; a terminated:0:Completed; b terminated:1:Error")
	w = newWorld(corev1.RestartPolicyOnFailure, "a", "b").exits("a", 0, 0, "").exits("b", 0, 0, "").finish()
	w.want(t, "Succeeded; a terminated:0:Completed; b terminated:0:Completed")
	w.pod.Status.Phase, w.pod.Status.Reason = corev1.PodFailed, "Evicted"
	if s := w.status(); s.Phase != corev1.PodFailed || s.Reason != "Evicted" {
		t.Errorf("%s %s, want Failed Evicted: a terminal phase stays", s.Phase, s.Reason)
	}
}

func TestDeletedPodThatRestartsAlwaysEndsByItsExitCodes(t *testing.T) {
	for code, want := range map[int32]string{0: "Succeeded; a terminated:0:Completed", 143: "Failed; a terminated:143:Error"} {
		w := newWorld(corev1.RestartPolicyAlways, "a").exits("a", 0, code, "")
		w.mem.Delete(time.Second, at(0))
		w.finish().want(t, want)
	}
}

func TestFailedInitContainerFailsThePod(t *testing.T) {
	w := newWorld(corev1.RestartPolicyNever, "a").exits("i", 0, 1, "")
	w.pod.Spec.InitContainers = []corev1.Container{{Name: "i"}}
	w.want(t, "Pending; i terminated:1:Error; a waiting:PodInitializing")
	w.finish().want(t, "Failed; i terminated:1:Error; a waiting:PodInitializing")
	w.pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	w.mem = plan.Memory{}
	w.want(t, "Pending; i terminated:1:Error; a waiting:PodInitializing")
}

func TestSidecarThatRestartsDoesNotMakeARunningPodPending(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a").runs("s", 0)
	w.pod.Spec.InitContainers = []corev1.Container{{Name: "s", RestartPolicy: always(), StartupProbe: &corev1.Probe{}}}
	w.want(t, "Pending; s running; a waiting:PodInitializing")
	w.runs("a", 0).want(t, "Running; s running; a running started ready")
}

func TestContainersThatTheRuntimeForgot(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a").runs("a", 3)
	w.pod.Status = w.status()
	w.seen.Containers = nil
	w.want(t, "Running; a waiting:ContainerCreating after terminated:137:ContainerStatusUnknown restarts=3")
	w.pod.Status = w.status()
	w.want(t, "Running; a waiting:ContainerCreating after terminated:137:ContainerStatusUnknown restarts=3")

	w = newWorld(corev1.RestartPolicyNever, "a").runs("a", 0)
	w.pod.Spec.InitContainers = []corev1.Container{{Name: "i"}}
	w.want(t, "Running; i terminated:0:Completed ready; a running started ready")
}

func TestPodThatNeverRanFailsWhenItIsDeleted(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a")
	w.mem.Delete(0, at(0))
	w.finish().want(t, "Failed; a terminated:137:ContainerStatusUnknown")
	w = newWorld(corev1.RestartPolicyAlways, "a")
	w.pod.Spec.InitContainers = []corev1.Container{{Name: "i"}}
	w.mem.Delete(0, at(0))
	w.finish().want(t, "Failed; i terminated:137:ContainerStatusUnknown; a waiting:PodInitializing")
}

func TestReadyFollowsTheProbes(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a").runs("a", 0)
	w.pod.Spec.Containers[0].StartupProbe, w.pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{}, &corev1.Probe{}
	w.want(t, "Running; a running")
	w.mem.Probes = map[string]plan.Probe{"a0": {Startup: plan.Success}}
	w.want(t, "Running; a running started")
	w.mem.Probes["a0"] = plan.Probe{Startup: plan.Success, Readiness: plan.Success}
	w.want(t, "Running; a running started ready")
	w.pod.Status = w.status()
	w.mem.Probes = nil
	w.want(t, "Running; a running started ready") // a new worker has no results yet
	w.mem.Probes = map[string]plan.Probe{"a0": {Readiness: plan.Failure}}
	w.want(t, "Running; a running started")
}

func TestEphemeralContainersAreNeitherStartedNorReady(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a").runs("a", 0).runs("e", 0)
	w.pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e"}}}
	w.want(t, "Running; a running started ready; e running")
}

func TestConditionsHaveAKubeletsWords(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a", "b").runs("i", 0)
	w.pod.Spec.InitContainers = []corev1.Container{{Name: "i"}, {Name: "j", RestartPolicy: always()}}
	check := func(why string, want ...string) {
		t.Helper()
		var got []string
		for _, c := range w.status().Conditions {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message)))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", why, diff)
		}
	}
	check("initializing", "PodReadyToStartContainers=True",
		"Initialized=False ContainersNotInitialized containers with incomplete status: [i j]",
		"ContainersReady=False ContainersNotReady containers with unready status: [j a b]")
	w.seen.Containers = nil
	w.exits("i", 0, 0, "").runs("j", 0).runs("a", 0)
	check("running", "PodReadyToStartContainers=True", "Initialized=True",
		"ContainersReady=False ContainersNotReady containers with unready status: [b]")
	w.runs("b", 0)
	check("ready", "PodReadyToStartContainers=True", "Initialized=True", "ContainersReady=True")
	w.seen.Sandboxes[0].Ready = false
	w.seen.Containers = nil
	w.exits("i", 0, 0, "").exits("j", 0, 0, "").exits("a", 0, 0, "").exits("b", 0, 0, "")
	w.mem.Delete(0, at(0))
	w.finish()
	check("done", "PodReadyToStartContainers=False PodSandboxNotReady pod sandbox is not ready",
		"Initialized=True PodCompleted", "ContainersReady=False PodCompleted")
	w.seen.Sandboxes = nil
	if got := w.status().Conditions[0].Message; got != "no pod sandbox exists" {
		t.Errorf("without a sandbox: %q", got)
	}
}

func TestResizeIsAConditionUntilItIsDone(t *testing.T) {
	w := newWorld(corev1.RestartPolicyAlways, "a").runs("a", 0)
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	w.seen.Containers[0].Created = &corev1.ResourceRequirements{Requests: list}
	last := func() string {
		c := w.status().Conditions
		return fmt.Sprintf("%s %s %s", c[len(c)-1].Type, c[len(c)-1].Reason, c[len(c)-1].Message)
	}
	w.pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	a := plan.Action{Kind: plan.Resize, Container: "a", ID: "a0", Resources: &w.pod.Spec.Containers[0].Resources}
	if got, want := last(), "PodResizeInProgress  "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.mem.End(a, plan.Outcome{Reason: "ResizeError", Message: "no"}, at(1))
	if got, want := last(), "PodResizeInProgress Error no"; got != want {
		t.Errorf("after a failure %q, want %q", got, want)
	}
	w.mem.ResizePending = &plan.ResizePending{Reason: "Deferred", Message: "later"}
	if got, want := last(), "PodResizePending Deferred later"; got != want {
		t.Errorf("pending %q, want %q", got, want)
	}
	w.mem.ResizePending = nil
	w.mem.End(a, plan.Outcome{}, at(2))
	if got, want := last(), "ContainersReady  "; got != want {
		t.Errorf("done %q, want %q", got, want)
	}
}
