// SPDX-License-Identifier: Apache-2.0

package podstatus_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func container(name string) corev1.Container { return corev1.Container{Name: name, Image: "img"} }

func sidecar(name string) corev1.Container {
	c := container(name)
	c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	return c
}

func pod(policy corev1.RestartPolicy, inits []corev1.Container, mains ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: policy, InitContainers: inits, Containers: mains}}
}

func runs(name string) podstatus.Container {
	return podstatus.Container{Name: name, State: podstatus.Running, Run: podstatus.Run{ID: "x://" + name, StartedAt: noon}}
}

func exited(name string, code int32) podstatus.Container {
	return podstatus.Container{Name: name, State: podstatus.Exited, Run: *run(name, code)}
}

func run(name string, code int32) *podstatus.Run {
	return &podstatus.Run{ID: "x://" + name, StartedAt: noon, FinishedAt: noon.Add(time.Second), ExitCode: &code}
}

func unknown(name string) podstatus.Container {
	return podstatus.Container{Name: name, State: podstatus.Exited, Run: podstatus.Run{ID: "x://" + name}}
}

// tell returns a status as one line: the phase, and each container with its state, r for ready, and its last
// end.
func tell(s corev1.PodStatus) string {
	var b strings.Builder
	fmt.Fprint(&b, s.Phase)
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			c := &list[i]
			fmt.Fprintf(&b, " %s:", c.Name)
			switch {
			case c.State.Running != nil:
				b.WriteString("runs")
			case c.State.Terminated != nil:
				fmt.Fprintf(&b, "%s(%d)", c.State.Terminated.Reason, c.State.Terminated.ExitCode)
			case c.State.Waiting != nil:
				b.WriteString(c.State.Waiting.Reason)
			}
			if c.Ready {
				b.WriteString("+r")
			}
			if t := c.LastTerminationState.Terminated; t != nil {
				fmt.Fprintf(&b, "<%s(%d)", t.Reason, t.ExitCode)
			}
			if c.RestartCount > 0 {
				fmt.Fprintf(&b, "x%d", c.RestartCount)
			}
		}
	}
	return b.String()
}

func TestStatus(t *testing.T) {
	const never, onFailure, always = corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure, corev1.RestartPolicyAlways
	a, b := container("a"), container("b")
	inits := []corev1.Container{container("i")}
	rules := container("a")
	rules.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
	rules.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}}}}
	others := container("a")
	others.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
	others.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpNotIn, Values: []int32{1}}}}
	back := podstatus.Container{Name: "a", Reason: "CrashLoopBackOff", Restarts: 2, Last: run("a", 1)}
	debugged := pod(always, nil, a)
	debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(b)}}
	debuggedOnce := debugged.DeepCopy()
	debuggedOnce.Spec.RestartPolicy = never
	oom := exited("a", 137)
	oom.Run.Reason = "OOMKilled"
	probed := runs("a")
	probed.Ready = ptr.To(false)
	starting := runs("a")
	starting.Started, starting.Ready = ptr.To(false), ptr.To(true)

	for _, tt := range []struct {
		name string
		pod  *corev1.Pod
		seen podstatus.Pod
		want string
	}{
		{"nothing is known", pod(always, nil, a), podstatus.Pod{}, "Pending a:ContainerCreating"},
		{"a pod without a spec has not ended", pod(always, nil), podstatus.Pod{Containers: []podstatus.Container{runs("a")}}, "Running"},
		{"nor when a container of it has", pod(never, nil), podstatus.Pod{Containers: []podstatus.Container{exited("a", 0)}}, "Running"},
		{"nor when nothing is known", pod(always, nil), podstatus.Pod{}, "Pending"},
		{"without a spec, the backend ends it", pod(never, nil), podstatus.Pod{Ended: true, Containers: []podstatus.Container{exited("a", 0)}}, "Succeeded"},
		{"without a spec, the backend ends it by a failure", pod(never, nil), podstatus.Pod{Ended: true, Containers: []podstatus.Container{exited("a", 1)}}, "Failed"},
		{"nothing is known, with init containers", pod(always, inits, a), podstatus.Pod{}, "Pending i:PodInitializing a:PodInitializing"},
		{"an image cannot be pulled", pod(always, nil, a), of(podstatus.Container{Name: "a", Reason: "ImagePullBackOff"}), "Pending a:ImagePullBackOff"},
		{"one of two runs", pod(always, nil, a, b), of(runs("a")), "Pending a:runs+r b:ContainerCreating"},
		{"both run, told in another order", pod(always, nil, a, b), of(runs("b"), runs("a")), "Running a:runs+r b:runs+r"},
		{"a container that the pod does not have", pod(always, nil, a), of(runs("a"), runs("pause")), "Running a:runs+r"},
		{"an init container runs", pod(always, inits, a), of(runs("i")), "Pending i:runs a:PodInitializing"},
		{"an init container is done", pod(always, inits, a), of(exited("i", 0)), "Pending i:Completed(0)+r a:PodInitializing"},
		{"an init container that was forgotten", pod(always, inits, a), of(runs("a")), "Running i:Completed(0)+r a:runs+r"},
		{"an init container fails for good", pod(never, inits, a), of(exited("i", 3)), "Failed i:Error(3) a:PodInitializing"},
		{"an init container fails and is tried again", pod(onFailure, inits, a), of(exited("i", 3)), "Pending i:Error(3) a:PodInitializing"},
		{"a sidecar runs, the main container not yet", pod(never, []corev1.Container{sidecar("s")}, a), of(runs("s")), "Pending s:runs+r a:PodInitializing"},
		{"a sidecar outlives the main container", pod(never, []corev1.Container{sidecar("s")}, a), of(runs("s"), exited("a", 0)), "Running s:runs+r a:Completed(0)"},
		{"a sidecar that failed is no failure", pod(never, []corev1.Container{sidecar("s")}, a), of(exited("s", 1), exited("a", 0)), "Succeeded s:Error(1) a:Completed(0)"},
		{"ends well", pod(never, nil, a), of(exited("a", 0)), "Succeeded a:Completed(0)"},
		{"both end well", pod(onFailure, nil, a, b), of(exited("a", 0), exited("b", 0)), "Succeeded a:Completed(0) b:Completed(0)"},
		{"one of two fails", pod(never, nil, a, b), of(exited("a", 0), exited("b", 7)), "Failed a:Completed(0) b:Error(7)"},
		{"one of two still runs", pod(never, nil, a, b), of(exited("a", 7), runs("b")), "Running a:Error(7) b:runs+r"},
		{"is restarted", pod(onFailure, nil, a), of(exited("a", 7)), "Running a:Error(7)"},
		{"is restarted always", pod(always, nil, a), of(exited("a", 0)), "Running a:Completed(0)"},
		{"waits for its restart", pod(always, nil, a), of(back), "Running a:CrashLoopBackOff<Error(1)x2"},
		{"its rule restarts it", pod(always, nil, rules), of(exited("a", 42)), "Running a:Error(42)"},
		{"its rule about other codes restarts it", pod(always, nil, others), of(exited("a", 0)), "Running a:Completed(0)"},
		{"its rule about other codes does not", pod(always, nil, others), of(exited("a", 1)), "Failed a:Error(1)"},
		{"its rule may restart it", pod(always, nil, others), of(unknown("a")), "Running a:ContainerStatusUnknown"},
		{"waits again, nobody knows how it ended", pod(always, nil, a), of(podstatus.Container{Name: "a", Restarts: 1}), "Running a:ContainerCreatingx1"},
		{"waits again, after an end without an exit code", pod(always, nil, a), of(podstatus.Container{Name: "a", Restarts: 1, Last: &podstatus.Run{ID: "x"}}), "Running a:ContainerCreatingx1"},
		{"waits again, nobody counted", pod(always, nil, a), of(podstatus.Container{Name: "a", Last: run("a", 1)}), "Running a:ContainerCreating<Error(1)"},
		{"its policy does not", pod(always, nil, rules), of(exited("a", 1)), "Failed a:Error(1)"},
		{"an init container of which nobody knows how it ended", pod(never, inits, a), of(unknown("i")), "Pending i:ContainerStatusUnknown a:PodInitializing"},
		{"and the main container was well after it", pod(never, inits, a), of(unknown("i"), exited("a", 0)), "Succeeded i:ContainerStatusUnknown a:Completed(0)"},
		{"everything is called ended, and no container ran", pod(never, inits, a), podstatus.Pod{Ended: true, Containers: []podstatus.Container{{Name: "a", State: podstatus.Exited}}},
			"Failed i:PodInitializing a:ContainerStatusUnknown"},
		{"a container of the backend's own outlives the pod", pod(never, nil, a), of(exited("a", 0), runs("pause")), "Succeeded a:Completed(0)"},
		{"an ephemeral container outlives the pod", debuggedOnce, of(exited("a", 0), runs("b")), "Succeeded a:Completed(0) b:runs"},
		{"ended by the backend", pod(always, nil, a), podstatus.Pod{Ended: true, Containers: []podstatus.Container{exited("a", 0)}}, "Succeeded a:Completed(0)"},
		{"ended by the backend, and failed", pod(always, nil, a), podstatus.Pod{Ended: true, Failed: true, Containers: []podstatus.Container{exited("a", 0)}}, "Failed a:Completed(0)"},
		{"ended before it ran", pod(always, nil, a), podstatus.Pod{Ended: true}, "Failed a:ContainerCreating"},
		{"failed counts only of what has ended", pod(always, nil, a), podstatus.Pod{Failed: true, Containers: []podstatus.Container{runs("a")}}, "Running a:runs+r"},
		{"an end that nobody knows", pod(never, nil, a), of(unknown("a")), "Failed a:ContainerStatusUnknown"},
		{"an end that nobody knows, and that may be followed by a restart", pod(onFailure, nil, a), of(unknown("a")), "Running a:ContainerStatusUnknown"},
		{"killed for its memory", pod(never, nil, a), of(oom), "Failed a:OOMKilled(137)"},
		{"not ready", pod(always, nil, a), of(probed), "Running a:runs"},
		{"not started, so not ready", pod(always, nil, a), of(starting), "Running a:runs"},
		{"an ephemeral container is neither", debugged, of(runs("a"), runs("b")), "Running a:runs+r b:runs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tell(podstatus.Status(tt.pod, tt.seen)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func of(list ...podstatus.Container) podstatus.Pod { return podstatus.Pod{Containers: list} }

func TestStatusHasWhatTheBackendSays(t *testing.T) {
	c := exited("a", 1)
	c.Image, c.ImageID, c.Restarts, c.Last = "other", "sha256:1", 4, run("before", 2)
	c.Run.Message = "that is why"
	got := podstatus.Status(pod(corev1.RestartPolicyAlways, nil, container("a")), podstatus.Pod{
		StartedAt: noon, IPs: []string{"10.0.0.1", "fd00::1"}, HostIPs: []string{"192.0.2.1"}, Reason: "R", Message: "M", Containers: []podstatus.Container{c},
	})
	text, err := json.Marshal(got)
	const end = `"startedAt":"2026-01-01T12:00:00Z","finishedAt":"2026-01-01T12:00:01Z"`
	want := `{"phase":"Running","message":"M","reason":"R","hostIP":"192.0.2.1","hostIPs":[{"ip":"192.0.2.1"}],` +
		`"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}],"startTime":"2026-01-01T12:00:00Z","containerStatuses":[{"name":"a",` +
		`"state":{"terminated":{"exitCode":1,"reason":"Error","message":"that is why",` + end + `,"containerID":"x://a"}},` +
		`"lastState":{"terminated":{"exitCode":2,"reason":"Error",` + end + `,"containerID":"x://before"}},` +
		`"ready":false,"restartCount":4,"image":"other","imageID":"sha256:1","containerID":"x://a","started":false}]}`
	if err != nil || string(text) != want {
		t.Errorf("got  %s, %v\nwant %s", text, err, want)
	}
}

// TestStatusInventsNothing: for any report of a backend, the status contains only reported exit codes, and a pod
// with running containers has not ended.
func TestStatusInventsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, seen := anyPod(t), podstatus.Pod{Ended: rapid.Bool().Draw(t, "ended"), Failed: rapid.Bool().Draw(t, "failed")}
		codes := map[string]bool{}
		for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
			if rapid.Bool().Draw(t, "told") {
				k := anyContainer(t, c.Name)
				seen.Containers = append(seen.Containers, k)
				for _, r := range []*podstatus.Run{&k.Run, k.Last} {
					if r != nil && r.ExitCode != nil {
						codes[fmt.Sprint(c.Name, *r.ExitCode)] = true
					}
				}
			}
		}
		before := p.DeepCopy()
		s := podstatus.Status(p, seen)
		if !equality.Semantic.DeepEqual(p, before) {
			t.Error("the pod was changed")
		}
		terminal, running := s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed, false
		for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
			for _, c := range list {
				running = running || c.State.Running != nil
				forgotten := c.State.Terminated != nil && strings.HasPrefix(c.State.Terminated.Message, "the backend does not report this container")
				for _, e := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
					if e != nil && !forgotten && !codes[fmt.Sprint(c.Name, e.ExitCode)] {
						t.Errorf("exit code %d of %s was never told", e.ExitCode, c.Name)
					}
				}
				if c.Ready && c.State.Running == nil && c.State.Terminated == nil {
					t.Errorf("%s is ready and does not run", c.Name)
				}
			}
		}
		for _, c := range s.ContainerStatuses {
			if s.Phase == corev1.PodSucceeded && (c.State.Terminated == nil || c.State.Terminated.ExitCode != 0) {
				t.Errorf("the pod has succeeded, but %s has not", c.Name)
			}
		}
		switch {
		case seen.Ended != terminal && seen.Ended:
			t.Errorf("the backend ended the pod, and its phase is %s", s.Phase)
		case terminal && !seen.Ended && running:
			t.Errorf("the phase is %s while a container runs", s.Phase)
		case len(s.InitContainerStatuses) != len(p.Spec.InitContainers) || len(s.ContainerStatuses) != len(p.Spec.Containers):
			t.Error("a container is missing")
		}
	})
}

func anyPod(t *rapid.T) *corev1.Pod {
	p := pod(rapid.SampledFrom([]corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}).Draw(t, "policy"), nil)
	for i := range rapid.IntRange(0, 2).Draw(t, "init containers") {
		c := container(fmt.Sprint("i", i))
		if rapid.Bool().Draw(t, "sidecar") {
			c = sidecar(c.Name)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "containers") {
		p.Spec.Containers = append(p.Spec.Containers, container(fmt.Sprint("m", i)))
	}
	return p
}

func anyContainer(t *rapid.T, name string) podstatus.Container {
	c := podstatus.Container{Name: name, State: rapid.SampledFrom([]podstatus.State{podstatus.Waiting, podstatus.Running, podstatus.Exited}).Draw(t, "state")}
	c.Restarts = rapid.Int32Range(0, 2).Draw(t, "restarts")
	end := func() *podstatus.Run {
		r := run(name, rapid.Int32Range(0, 2).Draw(t, "code"))
		if rapid.Bool().Draw(t, "unknown") {
			r.ExitCode = nil
		}
		return r
	}
	if c.State == podstatus.Exited {
		c.Run = *end()
	}
	if rapid.Bool().Draw(t, "has run before") {
		c.Last = end()
	}
	return c
}

// TestEndRunning checks that a running container of an ended pod has an unknown end, and others keep theirs.
func TestEndRunning(t *testing.T) {
	p := podstatus.Pod{Containers: []podstatus.Container{{State: podstatus.Running}, {State: podstatus.Exited, Run: podstatus.Run{ExitCode: new(int32(3))}}, {State: podstatus.Waiting}}}
	p.NotReady()
	p.EndRunning()
	if c := p.Containers; !p.Ended || c[0].State != podstatus.Exited || c[0].Run.ExitCode != nil || *c[1].Run.ExitCode != 3 || c[2].State != podstatus.Waiting || *c[0].Ready {
		t.Errorf("got %+v", p)
	}
}

// TestParseTime checks that a text without a time is no time.
func TestParseTime(t *testing.T) {
	if got, want := podstatus.ParseTime("2026-11-28T20:27:00.5Z"), time.Date(2026, 11, 28, 20, 27, 0, 5e8, time.UTC); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, text := range []string{"", "yesterday"} {
		if got := podstatus.ParseTime(text); !got.IsZero() {
			t.Errorf("%q is %s", text, got)
		}
	}
}
