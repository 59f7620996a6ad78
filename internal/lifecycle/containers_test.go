// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// container returns the status of the running container c.
func container(changes ...func(*corev1.ContainerStatus)) corev1.ContainerStatus {
	c := runningStatus().ContainerStatuses[0]
	for _, change := range changes {
		change(&c)
	}
	return c
}

func exited(code int32) func(*corev1.ContainerStatus) {
	return func(c *corev1.ContainerStatus) {
		c.Ready = false
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
}

// waiting makes a container wait that has never run.
func waiting(c *corev1.ContainerStatus) {
	*c = corev1.ContainerStatus{Name: c.Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
}

// backingOff makes a container wait for its next run.
func backingOff(code int32) func(*corev1.ContainerStatus) {
	return func(c *corev1.ContainerStatus) {
		waiting(c)
		c.State.Waiting.Reason, c.LastTerminationState.Terminated = "CrashLoopBackOff", &corev1.ContainerStateTerminated{ExitCode: code}
	}
}

func stateless(c *corev1.ContainerStatus) { *c = corev1.ContainerStatus{Name: c.Name} }

func anonymous(c *corev1.ContainerStatus) { c.ContainerID = "" }

func named(name string) func(*corev1.ContainerStatus) {
	return func(c *corev1.ContainerStatus) { c.Name = name }
}

// brief returns the parts of a container status that these tests compare.
func brief(c *corev1.ContainerStatus) string {
	switch {
	case c.State.Running != nil:
		return "running"
	case c.State.Waiting != nil:
		return c.State.Waiting.Reason
	case c.State.Terminated == nil:
		return ""
	case c.State.Terminated.ExitCode == 137 && c.State.Terminated.Reason == reasonStatusUnknown:
		return "killed"
	}
	return "exited"
}

// TestEndOfAPodInventsNoExitCode holds that the provider's phase counts at once, and that a container has no exit code until the provider
// reports one.
func TestEndOfAPodInventsNoExitCode(t *testing.T) {
	ran := pod("a", inPhase(corev1.PodRunning), func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{container()} })
	declared := pod("a", inPhase(corev1.PodFailed), func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{container()} })
	for _, tt := range []struct {
		name     string
		api      *corev1.Pod
		phase    corev1.PodPhase
		reported []corev1.ContainerStatus
		want     string
	}{
		{"it is said to run", pod("a"), corev1.PodSucceeded, []corev1.ContainerStatus{container()}, reasonStatusUnknown},
		{"it is said to run, without an ID", pod("a"), corev1.PodSucceeded, []corev1.ContainerStatus{container(anonymous)}, reasonStatusUnknown},
		{"it ran before and is said to run", ran, corev1.PodFailed, []corev1.ContainerStatus{container()}, reasonStatusUnknown},
		{"it ran before and is said to wait", ran, corev1.PodFailed, []corev1.ContainerStatus{container(waiting)}, reasonStatusUnknown},
		{"it waits for its next run", pod("a"), corev1.PodFailed, []corev1.ContainerStatus{container(backingOff(1))}, reasonStatusUnknown},
		{"it ran before and nothing is said of it", ran, corev1.PodSucceeded, nil, reasonStatusUnknown},
		{"it runs on, and somebody else declared the pod failed", declared, corev1.PodRunning, []corev1.ContainerStatus{container()}, reasonStatusUnknown},
		{"it never ran", pod("a"), corev1.PodFailed, []corev1.ContainerStatus{container(waiting)}, "ContainerCreating"},
		{"it has no state", pod("a"), corev1.PodFailed, []corev1.ContainerStatus{container(stateless)}, ""},
		{"it has exited", ran, corev1.PodFailed, []corev1.ContainerStatus{container(exited(7))}, "exited"},
		{"the pod goes on", ran, corev1.PodRunning, nil, "running"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report := &corev1.PodStatus{Phase: tt.phase, ContainerStatuses: tt.reported}
			_, after := publish(t, View{API: tt.api, Report: report, Attempted: true})
			got := &after.Status.ContainerStatuses[0]
			if brief(got) != tt.want {
				t.Fatalf("got %q, want %q", brief(got), tt.want)
			}
			if endUnknown(got) && (got.Ready || got.Started == nil || *got.Started || got.State.Waiting.Message == "") {
				t.Errorf("got %+v, want neither ready nor started, and a message", got)
			}
			if w, status := Publish(View{API: after, Report: report, Attempted: true, Now: now}); w != Keep {
				t.Errorf("a second time: %+v", status)
			}
			report.ContainerStatuses = []corev1.ContainerStatus{container(exited(42))}
			_, after = publish(t, View{API: after, Report: report, Attempted: true})
			if end := after.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 42 {
				t.Errorf("the exit code comes late: got %+v, want 42", after.Status.ContainerStatuses[0].State)
			}
		})
	}
}

// TestUnknownEndStaysOne holds that a container with an unknown end keeps this state until its end is reported.
func TestUnknownEndStaysOne(t *testing.T) {
	report := &corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{container(anonymous)}}
	_, after := publish(t, View{API: pod("a"), Report: report, Attempted: true})
	for _, said := range []func(*corev1.ContainerStatus){waiting, anonymous, stateless} {
		report.ContainerStatuses = []corev1.ContainerStatus{container(said)}
		_, after = publish(t, View{API: after, Report: report, Attempted: true})
		if got := &after.Status.ContainerStatuses[0]; !endUnknown(got) {
			t.Errorf("got %q, want %q", brief(got), reasonStatusUnknown)
		}
	}
}

// TestSidecarWithUnknownEndHadStarted: the pod was initialized, and remains so after its end.
func TestSidecarWithUnknownEndHadStarted(t *testing.T) {
	always, started := corev1.ContainerRestartPolicyAlways, true
	api := pod("a", func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "s", RestartPolicy: &always}}
	})
	report := &corev1.PodStatus{
		Phase:                 corev1.PodFailed,
		ContainerStatuses:     []corev1.ContainerStatus{container(exited(1))},
		InitContainerStatuses: []corev1.ContainerStatus{container(named("s"), func(c *corev1.ContainerStatus) { c.Started = &started })},
	}
	_, after := publish(t, View{API: api, Report: report, Attempted: true})
	if c := condition(after.Status.Conditions, corev1.PodInitialized); c.Status != corev1.ConditionTrue || !endUnknown(&after.Status.InitContainerStatuses[0]) {
		t.Errorf("Initialized is %+v, the sidecar %q", c, brief(&after.Status.InitContainerStatuses[0]))
	}
}

// TestContainersWhilePodRuns checks what is kept from the earlier status.
func TestContainersWhilePodRuns(t *testing.T) {
	restarted := func(times int32) func(*corev1.ContainerStatus) {
		return func(c *corev1.ContainerStatus) { c.RestartCount = times }
	}
	never, own, nothing := corev1.RestartPolicyNever, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever
	rule := corev1.ContainerRestartRule{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}
	for _, tt := range []struct {
		name          string
		policy        corev1.RestartPolicy
		container     corev1.Container
		before, after corev1.ContainerStatus
		want          string
		count         int32
	}{
		{name: "it restarts", before: container(exited(1)), after: container(restarted(1)), want: "running", count: 1},
		{name: "its count falls", before: container(restarted(2)), after: container(restarted(1)), want: "running", count: 2},
		{name: "it runs, and is said to wait", policy: never, before: container(), after: container(waiting), want: "ContainerCreating"},
		{name: "it must not restart", policy: never, before: container(exited(0)), after: container(), want: "exited"},
		{name: "it has a policy of its own", policy: never, container: corev1.Container{RestartPolicy: &own}, before: container(exited(0)), after: container(), want: "running"},
		{name: "it has a rule of its own for its end", policy: never, container: corev1.Container{RestartPolicy: &nothing, RestartPolicyRules: []corev1.ContainerRestartRule{rule}}, before: container(exited(42)), after: container(), want: "running"},
		{name: "it has a rule of its own for another end", policy: never, container: corev1.Container{RestartPolicy: &nothing, RestartPolicyRules: []corev1.ContainerRestartRule{rule}}, before: container(exited(1)), after: container(), want: "exited"},
		{name: "it must not restart by a policy of its own", container: corev1.Container{RestartPolicy: &nothing}, before: container(exited(1)), after: container(), want: "exited"},
	} {
		for kind, of := range map[string]func(*corev1.Pod, *corev1.PodStatus) (*[]corev1.Container, *[]corev1.ContainerStatus){
			"": func(p *corev1.Pod, s *corev1.PodStatus) (*[]corev1.Container, *[]corev1.ContainerStatus) {
				return &p.Spec.Containers, &s.ContainerStatuses
			},
			"init": func(p *corev1.Pod, s *corev1.PodStatus) (*[]corev1.Container, *[]corev1.ContainerStatus) {
				return &p.Spec.InitContainers, &s.InitContainerStatuses
			},
		} {
			t.Run(tt.name+" "+kind, func(t *testing.T) {
				api, report := pod("a", inPhase(corev1.PodRunning)), &corev1.PodStatus{Phase: corev1.PodRunning}
				api.Spec.RestartPolicy, tt.container.Name = tt.policy, "c"
				spec, before := of(api, &api.Status)
				*spec, *before = []corev1.Container{tt.container}, []corev1.ContainerStatus{tt.before}
				_, said := of(api, report)
				*said = []corev1.ContainerStatus{tt.after}
				_, after := publish(t, View{API: api, Report: report})
				if _, got := of(after, &after.Status); brief(&(*got)[0]) != tt.want || (*got)[0].RestartCount != tt.count {
					t.Errorf("got %q after %d restarts, want %q after %d", brief(&(*got)[0]), (*got)[0].RestartCount, tt.want, tt.count)
				}
			})
		}
	}
}

// TestPublishedB1ReplacedContainerRunsAgain: a backend replaces a container that its policy does not restart, and reports the end of the
// first instance (tektoncd/pipeline: cmd/nop/README.md changes images of sidecars). The API server refuses the status of an ended container
// that runs again, but accepts a running container without an earlier status.
func TestPublishedB1ReplacedContainerRunsAgain(t *testing.T) {
	end := func(c *corev1.ContainerStatus) {
		exited(0)(c)
		c.State.Terminated.FinishedAt = metav1.Time{Time: now.Add(20 * time.Second)}
	}
	run := func(id string, count int32, started time.Duration) func(*corev1.ContainerStatus) {
		return func(c *corev1.ContainerStatus) {
			c.ContainerID, c.RestartCount, c.State.Running.StartedAt = id, count, metav1.Time{Time: now.Add(started)}
		}
	}
	ready := []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, tt := range []struct {
		name  string
		later func(*corev1.ContainerStatus)
		want  string
	}{
		{"another instance", run("x://2", 0, 21*time.Second), "running"},
		{"another instance, in the second in which the first one ended", run("x://2", 0, 20*time.Second), "running"},
		{"another run of the same ID", run("x://1", 1, 0), "running"},
		{"another run of a backend without IDs", run("", 1, 0), "running"},
		{"the same instance, late", run("x://1", 0, 5*time.Second), "exited"},
		{"the same instance of a backend without IDs, late", run("", 0, 5*time.Second), "exited"},
		{"an instance from before, late", run("x://0", 0, 1*time.Second), "exited"},
		{"it is said to wait", waiting, "exited"},
	} {
		for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure} {
			t.Run(tt.name+" "+string(policy), func(t *testing.T) {
				api := pod("a", func(p *corev1.Pod) { p.Spec.RestartPolicy = policy })
				for _, said := range [][]func(*corev1.ContainerStatus){{}, {end}, {tt.later}, {tt.later}} {
					report := &corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{container(said...)}, Conditions: ready}
					before := api
					_, api = publish(t, View{API: api, Report: report, Attempted: true})
					for _, was := range before.Status.ContainerStatuses {
						if st := statusNamed(api.Status.ContainerStatuses, was.Name); was.State.Terminated != nil && st != nil && st.State.Terminated == nil {
							t.Fatalf("the container is %q after its end, which the API server refuses", brief(st))
						}
					}
					for _, st := range api.Status.ContainerStatuses {
						if c := condition(api.Status.Conditions, corev1.PodReady); c.Status == corev1.ConditionTrue && st.State.Terminated != nil {
							t.Errorf("the pod is ready, and its container has ended: %+v", st)
						}
					}
				}
				if got := api.Status.ContainerStatuses; len(got) != 1 || brief(&got[0]) != tt.want {
					t.Errorf("got %+v, want it %s", got, tt.want)
				}
			})
		}
	}
}

// TestEphemeralContainersNeverRestart holds this for every restart policy of the pod.
func TestEphemeralContainersNeverRestart(t *testing.T) {
	_, after := publish(t, View{API: pod("a"), Report: &corev1.PodStatus{Phase: corev1.PodRunning, EphemeralContainerStatuses: []corev1.ContainerStatus{container()}}})
	for _, said := range []struct {
		status corev1.ContainerStatus
		want   string
	}{{container(waiting), "ContainerCreating"}, {container(), "running"}, {container(exited(1)), "exited"}, {container(), "exited"}} {
		_, after = publish(t, View{API: after, Report: &corev1.PodStatus{Phase: corev1.PodRunning, EphemeralContainerStatuses: []corev1.ContainerStatus{said.status}}})
		if got := brief(&after.Status.EphemeralContainerStatuses[0]); got != said.want {
			t.Errorf("it is said to be %q: got %q, want %q", brief(&said.status), got, said.want)
		}
	}
	_, after = publish(t, View{API: pod("a"), Report: &corev1.PodStatus{Phase: corev1.PodFailed, EphemeralContainerStatuses: []corev1.ContainerStatus{container()}}})
	if got := &after.Status.EphemeralContainerStatuses[0]; !endUnknown(got) {
		t.Errorf("the pod has ended: got %q, want %q", brief(got), reasonStatusUnknown)
	}
}

// TestContainersThatCannotBeAdded holds that such containers have a status that says so, until the backend reports them.
func TestContainersThatCannotBeAdded(t *testing.T) {
	api := pod("a", inPhase(corev1.PodRunning), func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "shell"}}}
	})
	if _, after := publish(t, View{API: api}); len(after.Status.EphemeralContainerStatuses) > 0 {
		t.Errorf("got %+v of a backend that may add it", after.Status.EphemeralContainerStatuses)
	}
	_, after := publish(t, View{API: api, NoEphemeral: true})
	got := after.Status.EphemeralContainerStatuses
	if len(got) != 1 || got[0].Name != "debug" || got[0].Image != "shell" || brief(&got[0]) != "Unsupported" || got[0].State.Waiting.Message == "" {
		t.Errorf("got %+v, want one that waits and says why", got)
	}
	_, after = publish(t, View{API: api, NoEphemeral: true, Report: &corev1.PodStatus{Phase: corev1.PodRunning, EphemeralContainerStatuses: []corev1.ContainerStatus{container(named("debug"))}}})
	if got := after.Status.EphemeralContainerStatuses; brief(&got[0]) != "running" {
		t.Errorf("got %q of one that runs", brief(&got[0]))
	}
}
