// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

func newProvider(t testing.TB, config Config) *provider {
	t.Helper()
	p, err := New(t.Context(), cli.ProviderInput{NodeName: "n1", InternalIP: "192.0.2.1", DaemonPort: 10250}, config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// newPod returns a pod with one container c. The annotations are name, value, name, value, and so on.
func newPod(name string, annotations ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "image:1",
			Env:   []corev1.EnvVar{{Name: "GREETING", Value: "hello"}},
			Ports: []corev1.ContainerPort{{ContainerPort: 80}},
		}}},
	}
	for i := 0; i < len(annotations); i += 2 {
		pod.Annotations[AnnotationPrefix+annotations[i]] = annotations[i+1]
	}
	return pod
}

func create(t testing.TB, p *provider, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		if err := p.CreatePod(context.Background(), pod); err != nil {
			t.Fatal(err)
		}
	}
}

// record collects reports as "name phase", with the second of their arrival.
type record struct {
	start time.Time
	mu    sync.Mutex
	lines []string
	last  map[string]*corev1.Pod
}

func (r *record) notify(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ready := ""
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			ready = " ready"
		}
	}
	r.lines = append(r.lines, fmt.Sprintf("%v %s %s%s", time.Since(r.start).Round(time.Second), pod.Name, pod.Status.Phase, ready))
	r.last[pod.Name] = pod
}

func newRecord() *record { return &record{start: time.Now(), last: map[string]*corev1.Pod{}} }

func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, r := newProvider(t, Config{}), newRecord()
		p.NotifyPods(t.Context(), r.notify)
		job := newPod("job", "start-delay", "2s", "run-for", "10s")
		job.Spec.RestartPolicy = corev1.RestartPolicyNever
		create(t, p, job,
			newPod("slow", "ready-delay", "5s", "delete-delay", "3s"),
		)
		time.Sleep(time.Hour)
		if err := p.DeletePod(t.Context(), newPod("slow")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		want := []string{
			"0s job Pending", "0s slow Running", "2s job Running ready", "5s slow Running ready", "12s job Succeeded",
			"1h0m0s slow Running ready", "1h0m3s slow Succeeded",
		}
		if diff := cmp.Diff(want, r.lines); diff != "" {
			t.Error(diff)
		}
		if _, err := p.GetPod(t.Context(), "ns", "slow"); !errdefs.IsNotFound(err) {
			t.Errorf("get a stopped pod: got %v, want not found", err)
		}
		if _, err := p.GetPod(t.Context(), "ns", "job"); err != nil {
			t.Errorf("get a completed pod: got %v, want it, until it is deleted", err)
		}
		if len(p.agenda) != 0 {
			t.Errorf("%d reports are planned, want none", len(p.agenda))
		}
	})
}

func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, Config{})
		pod := newPod("a")
		always := corev1.ContainerRestartPolicyAlways
		pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i"}, {Name: "sidecar", Image: "s", RestartPolicy: &always}}
		create(t, p, pod)
		status, err := p.GetPodStatus(t.Context(), "ns", "a")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range status.Conditions {
			if c.Status != corev1.ConditionTrue || c.LastTransitionTime.IsZero() {
				t.Errorf("condition %+v, want it true", c)
			}
		}
		if len(status.Conditions) != 5 || status.PodIP != "10.88.0.1" || status.HostIP != "192.0.2.1" || status.StartTime == nil {
			t.Errorf("got %+v", status)
		}
		init := status.InitContainerStatuses
		if init[0].State.Terminated == nil || init[0].State.Terminated.Reason != "Completed" || init[1].State.Running == nil {
			t.Errorf("init containers: got %+v", init)
		}
		c := status.ContainerStatuses[0]
		if c.State.Running == nil || !c.Ready || !*c.Started || c.RestartCount != 0 || !strings.HasPrefix(c.ContainerID, containerIDScheme) || c.ImageID == "" {
			t.Errorf("container: got %+v", c)
		}

		r := newRecord()
		p.NotifyPods(t.Context(), r.notify)
		if err := p.DeletePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		last := r.last["a"].Status
		ended := last.ContainerStatuses[0].State.Terminated
		if last.Phase != corev1.PodSucceeded || last.Reason != "MockProviderPodDeleted" || ended == nil || ended.Reason != "MockProviderPodContainerDeleted" || ended.ExitCode != 0 {
			t.Errorf("last report: got %+v", last)
		}
	})
}

func TestRestartsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, Config{Defaults: Behavior{RunFor: seconds(10), ExitCode: 2, RestartDelay: seconds(1)}})
		create(t, p, newPod("a"))
		time.Sleep(25 * time.Second)
		status, _ := p.GetPodStatus(t.Context(), "ns", "a")
		c := status.ContainerStatuses[0]
		if c.RestartCount != 2 || c.State.Running == nil || c.LastTerminationState.Terminated == nil || c.LastTerminationState.Terminated.ExitCode != 2 {
			t.Errorf("got %+v, want the third run, after exit code 2", c)
		}
		time.Sleep(7 * time.Second)
		status, _ = p.GetPodStatus(t.Context(), "ns", "a")
		if w := status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "CrashLoopBackOff" || status.Phase != corev1.PodRunning {
			t.Errorf("got %+v, want it to wait for a restart", status)
		}
	})
}

func TestSameNameIsAnotherPod(t *testing.T) {
	p := newProvider(t, Config{})
	old, next := newPod("a"), newPod("a")
	next.UID = "another"
	create(t, p, old, old)
	if err := p.CreatePod(t.Context(), next); !errdefs.IsInvalidInput(err) {
		t.Errorf("create over another pod: got %v, want invalid input", err)
	}
	for what, call := range map[string]func(context.Context, *corev1.Pod) error{"update": p.UpdatePod, "delete": p.DeletePod} {
		if err := call(t.Context(), next); !errdefs.IsNotFound(err) {
			t.Errorf("%s of another pod: got %v, want not found", what, err)
		}
	}
	if err := p.DeletePod(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := p.DeletePod(t.Context(), old); !errdefs.IsNotFound(err) {
		t.Errorf("delete again: got %v, want not found", err)
	}
	create(t, p, next)
	if got, err := p.GetPod(t.Context(), "ns", "a"); err != nil || got.UID != "another" {
		t.Errorf("got %v, %v, want the new pod", got, err)
	}
}

func TestPodGoesOnAfterRestartOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newProvider(t, Config{})
		create(t, first, newPod("other"), newPod("a", "run-for", "1m"))
		time.Sleep(30 * time.Second)
		before, _ := first.GetPod(t.Context(), "ns", "a")

		second := newProvider(t, Config{})
		create(t, second, before)
		after, _ := second.GetPod(t.Context(), "ns", "a")
		if diff := cmp.Diff(before.Status, after.Status); diff != "" {
			t.Errorf("status changed by the restart: %s", diff)
		}
		create(t, second, newPod("b"), newPod("c"))
		b, _ := second.GetPod(t.Context(), "ns", "b")
		c, _ := second.GetPod(t.Context(), "ns", "c")
		if b.Status.PodIP != "10.88.0.1" || c.Status.PodIP != "10.88.0.3" {
			t.Errorf("addresses %s and %s, want 10.88.0.1 and 10.88.0.3: 10.88.0.2 is taken", b.Status.PodIP, c.Status.PodIP)
		}
	})
}

func TestAnnotationErrors(t *testing.T) {
	p := newProvider(t, Config{})
	for _, tc := range []struct{ name, value, want string }{
		{"run-for", "ten", `annotation mock.virtual-kubelet.io/run-for is "ten", want a duration such as 1m30s`},
		{"start-delay", "-1s", `annotations of pod ns/a: the start delay is -1s, want 0 or more`},
		{"exit-code", "x", `annotation mock.virtual-kubelet.io/exit-code is "x", want a whole number`},
		{"exit-code", "256", `annotations of pod ns/a: the exit code is 256, want 0 to 255`},
		{"fail-create", "yes", `annotation mock.virtual-kubelet.io/fail-create is "yes", want true or false`},
	} {
		err := p.CreatePod(t.Context(), newPod("a", tc.name, tc.value))
		if !errdefs.IsInvalidInput(err) || err.Error() != tc.want {
			t.Errorf("%s=%s:\n got %v\nwant %s", tc.name, tc.value, err, tc.want)
		}
	}
	if err := p.CreatePod(t.Context(), newPod("a", "fail-create", "true")); err == nil || errdefs.IsInvalidInput(err) {
		t.Errorf("fail-create: got %v, want an error that is retried", err)
	}
	if pods, _ := p.GetPods(t.Context()); len(pods) != 0 {
		t.Errorf("%d pods were created, want none", len(pods))
	}
}
