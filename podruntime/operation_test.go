// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

func TestCrashedContainerIsStartedAgainWithDelay(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.Script(fakecri.ByName("main"), fakecri.ExitAfter(time.Second, 3), fakecri.ExitAfter(time.Second, 3), fakecri.Forever())
		pod := podOf("web", "main")
		w.create(pod)
		w.await(pod, "backing off", func(s *corev1.PodStatus) bool {
			c := s.ContainerStatuses
			return len(c) > 0 && c[0].State.Waiting != nil && c[0].State.Waiting.Reason == "CrashLoopBackOff"
		})
		s := w.await(pod, "running for the third time", func(s *corev1.PodStatus) bool {
			return s.ContainerStatuses[0].RestartCount == 2 && s.ContainerStatuses[0].Ready
		})
		if last := s.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 3 {
			t.Errorf("got %s, want the last exit code 3", dump(s))
		}
		if len(w.eventsOf("BackOff Back-off restarting failed container main in pod web_default(uid-web) (spec.containers{main})")) == 0 {
			t.Errorf("got events %v, want one of the back-off", w.eventsOf(""))
		}
	})
}

func TestProcessThatWasKilledFindsItsPods(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.Script(fakecri.ByName("side"), fakecri.ExitAfter(time.Second, 1), fakecri.Forever())
		pod := podOf("web", "main", "side")
		w.create(pod)
		w.await(pod, "restarted once", func(s *corev1.PodStatus) bool {
			return len(s.ContainerStatuses) == 2 && s.ContainerStatuses[1].RestartCount == 1 && s.ContainerStatuses[1].Ready
		})
		before, calls := w.last(pod.UID), w.Changes()
		w.kill()
		w.start()
		found, err := w.runtime.GetPods(t.Context())
		if err != nil || len(found) != 1 || found[0].UID != pod.UID || found[0].Name != "web" || found[0].Namespace != "default" {
			t.Fatalf("got pods %v, %v; want the one that ran", found, err)
		}
		again := pod.DeepCopy()
		again.Status = *before.DeepCopy()
		if err := w.runtime.UpdatePod(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(before.ContainerStatuses, w.last(pod.UID).ContainerStatuses); diff != "" {
			t.Errorf("container statuses before and after the restart (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(calls, w.Changes()); diff != "" {
			t.Errorf("calls that change something, before and after the restart (-before +after):\n%s", diff)
		}
	})
}

func TestPodThatIsNotWantedAnyMoreAfterARestartIsStopped(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		w.kill()
		w.start()
		found, err := w.runtime.GetPods(t.Context())
		if err != nil || len(found) != 1 {
			t.Fatalf("got pods %v, %v; want one", found, err)
		}
		if err := w.runtime.DeletePod(t.Context(), found[0]); err != nil {
			t.Fatal(err)
		}
		w.awaitGone(pod)
		if n := len(w.Sandboxes()) + len(w.Containers()); n != 0 {
			t.Errorf("got %d sandboxes and containers, want 0", n)
		}
	})
}

func TestEndedPodKeepsItsLogsThroughARestart(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.Script(fakecri.ByName("main"), fakecri.Exit(0))
		pod := podOf("job", "main")
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.create(pod)
		w.await(pod, "succeeded", func(s *corev1.PodStatus) bool { return s.Phase == corev1.PodSucceeded })
		w.kill()
		w.start()
		found, err := w.runtime.GetPods(t.Context())
		if err != nil || len(found) != 1 || found[0].Status.Phase != corev1.PodSucceeded {
			t.Fatalf("got pods %v, %v; want one that succeeded", found, err)
		}
		if len(w.Containers()) != 1 {
			t.Errorf("got containers %v, want the one that has ended", w.Containers())
		}
		w.delete(pod, 0)
		w.awaitGone(pod)
	})
}

func TestImageThatCannotBePulledIsTriedAgain(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.Publish(fakecri.Image{Name: "late", Errors: []error{errors.New("no route"), errors.New("no route"), errors.New("no route")}})
		pod := podOf("web", "main")
		pod.Spec.Containers[0].Image = "late"
		w.create(pod)
		waits := func(reason string) func(*corev1.PodStatus) bool {
			return func(s *corev1.PodStatus) bool {
				c := s.ContainerStatuses
				return len(c) == 1 && c[0].State.Waiting != nil && c[0].State.Waiting.Reason == reason
			}
		}
		w.await(pod, "failing to pull", waits("ErrImagePull"))
		s := w.await(pod, "backing off", waits("ImagePullBackOff"))
		if m := s.ContainerStatuses[0].State.Waiting.Message; m != `Back-off pulling image "late": ErrImagePull: no route` {
			t.Errorf("got message %q", m)
		}
		begin := time.Now()
		w.awaitRunning(pod)
		if took := time.Since(begin); took > 2*time.Minute {
			t.Errorf("it took %v, want the delays 10, 20 and 40 s", took)
		}
		for _, want := range []string{`Pulling Pulling image "late" (spec.containers{main})`, `Failed Failed to pull image "late": no route`,
			"Failed Error: ErrImagePull", `BackOff Back-off pulling image "late"`, "Failed Error: ImagePullBackOff", `Pulled Successfully pulled image "late" in `} {
			if len(w.eventsOf(want)) == 0 {
				t.Errorf("got events %v, want %q among them", w.eventsOf(""), want)
			}
		}
	})
}

func TestContainersGetTheirGrace(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.Script(fakecri.ByName("deaf"), fakecri.Life{IgnoresStop: true})
		pod := podOf("web", "deaf")
		w.create(pod)
		w.awaitRunning(pod)
		begin := time.Now()
		w.delete(pod, 20)
		end := w.await(pod, "ended", func(s *corev1.PodStatus) bool { return s.ContainerStatuses[0].State.Terminated != nil })
		if took := time.Since(begin); took < 20*time.Second || took > 22*time.Second {
			t.Errorf("the stop took %v, want the grace period of 20 s", took)
		}
		if code := end.ContainerStatuses[0].State.Terminated.ExitCode; code != 137 {
			t.Errorf("got exit code %d, want 137", code)
		}
		w.awaitGone(pod)
	})
}

func TestRuntimeThatDoesNotAnswerLosesNoPod(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		w.create(pod)
		before := w.awaitRunning(pod)
		down := status.Error(codes.Unavailable, "connection refused")
		methods := []string{"ListContainers", "ListPodSandbox", "ContainerStatus", "PodSandboxStatus", "Status"}
		for _, m := range methods {
			w.Fail(m, -1, down)
		}
		if err := w.runtime.Ping(t.Context()); err == nil {
			t.Error("Ping succeeded without a runtime")
		}
		time.Sleep(10 * time.Minute)
		found, err := w.runtime.GetPod(t.Context(), pod.Namespace, pod.Name)
		if err != nil || cmp.Diff(before.ContainerStatuses, found.Status.ContainerStatuses) != "" {
			t.Errorf("got %v, %v; want the status that was known last", found, err)
		}
		c, _ := w.Find("web", "main")
		w.Exit(c.ID, 1, "")
		for _, m := range methods {
			w.Fail(m, 0, nil)
		}
		w.await(pod, "restarted", func(s *corev1.PodStatus) bool {
			return s.ContainerStatuses[0].RestartCount == 1 && s.ContainerStatuses[0].Ready
		})
	})
}

func TestEnvironmentThatIsMissingIsWaitedFor(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		var there atomic.Bool
		w.environment = func(pod *corev1.Pod, name string) (*corev1.Container, error) {
			if !there.Load() {
				return nil, errors.New(`configmap "settings" not found`)
			}
			c := containerNamed(pod, name).DeepCopy()
			c.Env = []corev1.EnvVar{{Name: "IP", Value: pod.Status.PodIP}}
			return c, nil
		}
		pod := podOf("web", "main")
		w.create(pod)
		s := w.await(pod, "waiting", func(s *corev1.PodStatus) bool {
			c := s.ContainerStatuses
			return len(c) == 1 && c[0].State.Waiting != nil && c[0].State.Waiting.Reason == "CreateContainerConfigError"
		})
		if m := s.ContainerStatuses[0].State.Waiting.Message; m != `configmap "settings" not found` {
			t.Errorf("got message %q", m)
		}
		there.Store(true)
		s = w.awaitRunning(pod)
		configs := w.ContainerConfigs()
		if got := string(configs[0].Envs[0].Value); got != s.PodIP || got == "" {
			t.Errorf("got IP=%q, want the address of the pod, %q", got, s.PodIP)
		}
	})
}

func TestTerminationMessage(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("job", "main")
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.create(pod)
		w.awaitRunning(pod)
		c, _ := w.Find("job", "main")
		for _, m := range c.Config.Mounts {
			if m.ContainerPath == "/dev/termination-log" {
				write(t, m.HostPath, strings.Repeat("x", 5000)+"the end")
			}
		}
		w.Exit(c.ID, 1, "")
		s := w.await(pod, "failed", func(s *corev1.PodStatus) bool { return s.Phase == corev1.PodFailed })
		if m := s.ContainerStatuses[0].State.Terminated.Message; len(m) != 4096 || !strings.HasSuffix(m, "the end") {
			t.Errorf("got a message of %d bytes, want the last 4096", len(m))
		}
	})
}

func TestPodWithAnUnsafeSysctlIsRejected(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
		w.create(pod)
		s := w.await(pod, "rejected", func(s *corev1.PodStatus) bool { return s.Phase == corev1.PodFailed })
		if s.Reason != "SysctlForbidden" || s.Message != `Pod was rejected: forbidden sysctl: "kernel.msgmax" not allowlisted` || len(w.Changes()) != 0 {
			t.Errorf("got %s after the calls %v", dump(s), w.Changes())
		}
		if len(w.eventsOf(`SysctlForbidden forbidden sysctl: "kernel.msgmax" not allowlisted`)) != 1 {
			t.Errorf("got events %v", w.eventsOf(""))
		}
	})
}

// TestSysctlOfTheNetworkIsRejectedWithoutOne: where pods share the host's network, a pod with a network sysctl
// is rejected. Otherwise it would set the sysctl for the host, or run without it.
func TestSysctlOfTheNetworkIsRejectedWithoutOne(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.kill()
		w.configure = func(c *Config) { c.MachineNetwork, c.AllowedUnsafeSysctls = true, []string{"kernel.msg*"} }
		w.start()
		pod, other := podOf("web", "main"), podOf("other", "main")
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.ipv4.tcp_syncookies", Value: "1"}}}
		w.create(pod)
		s := w.await(pod, "rejected", func(s *corev1.PodStatus) bool { return s.Phase == corev1.PodFailed })
		want := `Pod was rejected: forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed on this node, where every pod is in the network of the machine`
		if s.Reason != "SysctlForbidden" || s.Message != want || len(w.Changes()) != 0 {
			t.Errorf("got %s after the calls %v", dump(s), w.Changes())
		}
		other.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
		w.create(other)
		w.awaitRunning(other) // the configuration allows it
	})
}

func TestGetPodsDoesNotWaitForEachPodOfARuntimeThatHangs(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		var pods []*corev1.Pod
		for i := range 20 {
			pod := podOf("web-"+strconv.Itoa(i), "main")
			pods = append(pods, pod)
			w.create(pod)
		}
		for _, pod := range pods {
			w.awaitRunning(pod)
		}
		w.Hang("ContainerStatus", -1)
		for _, c := range w.Containers() {
			w.Exit(c.ID, 1, "")
		}
		time.Sleep(5 * time.Second)
		for _, pod := range pods {
			if err := w.runtime.UpdatePod(t.Context(), pod.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		found, err := w.runtime.GetPods(t.Context())
		if took := time.Since(begin); err != nil || len(found) != 20 || took > 5*time.Second {
			t.Errorf("got %d pods, %v after %v; want 20 within 5 s", len(found), err, took)
		}
	})
}

// TestContainerThatCannotStartEndsByItsPolicy: a container that cannot start fails its pod with the restart
// policy Never. With Always, it backs off and shows its last end.
func TestContainerThatCannotStartEndsByItsPolicy(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.Script(fakecri.ByName("main"), fakecri.Life{StartError: errors.New(`exec: "none": executable file not found`)})
		never, always := podOf("never", "main"), podOf("always", "main")
		never.Spec.RestartPolicy, always.Spec.RestartPolicy = corev1.RestartPolicyNever, corev1.RestartPolicyAlways
		w.create(never)
		w.create(always)
		failed := w.await(never, "failed", func(s *corev1.PodStatus) bool { return s.Phase == corev1.PodFailed })
		back := w.await(always, "backing off", func(s *corev1.PodStatus) bool {
			return s.ContainerStatuses[0].State.Waiting != nil && s.ContainerStatuses[0].State.Waiting.Reason == "CrashLoopBackOff"
		})
		for _, end := range []*corev1.ContainerStateTerminated{failed.ContainerStatuses[0].State.Terminated, back.ContainerStatuses[0].LastTerminationState.Terminated} {
			if end == nil || end.ExitCode != 128 || end.Reason != "StartError" || end.Message != `exec: "none": executable file not found` {
				t.Errorf("got %+v, want StartError, 128 and what the runtime said", end)
			}
		}
	})
}
