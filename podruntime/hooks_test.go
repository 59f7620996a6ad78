// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

func TestPostStartHookThatFailsEndsTheContainer(t *testing.T) {
	config := fakecri.Config{NoEvents: true, Exec: func(context.Context, fakecri.Container, []string) fakecri.Answer {
		return fakecri.Answer{Code: 5, Stderr: "secret"}
	}}
	inWorld(t, config, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"hook"}}}}
		w.create(pod)
		w.await(pod, "restarted", func(s *corev1.PodStatus) bool {
			return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].RestartCount > 0
		})
		for _, want := range []string{"FailedPostStartHook PostStartHook failed (spec.containers{main})", "Killing FailedPostStartHook (spec.containers{main})"} {
			if !slices.Contains(w.eventsOf(""), want) {
				t.Errorf("got events %v, want %q", w.eventsOf(""), want)
			}
		}
		if leaked := w.eventsOf("secret"); len(leaked) > 0 {
			t.Errorf("what a hook said is in events: %v", leaked)
		}
	})
}

// TestProbesBeginAfterThePostStartHook: probes begin after the postStart hook, because a kubelet does not
// consider the container running before.
func TestProbesBeginAfterThePostStartHook(t *testing.T) {
	var early, probes atomic.Int32
	var hooked atomic.Bool
	config := fakecri.Config{NoEvents: true, Exec: func(_ context.Context, _ fakecri.Container, command []string) fakecri.Answer {
		if command[0] == "hook" {
			time.Sleep(time.Minute)
			hooked.Store(true)
			return fakecri.Answer{}
		}
		probes.Add(1)
		if !hooked.Load() {
			early.Add(1)
			return fakecri.Answer{Code: 1}
		}
		return fakecri.Answer{}
	}}
	inWorld(t, config, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		probe := &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"check"}}},
			PeriodSeconds: 5, FailureThreshold: 3, TimeoutSeconds: 1, SuccessThreshold: 1,
		}
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"hook"}}}}
		pod.Spec.Containers[0].LivenessProbe, pod.Spec.Containers[0].ReadinessProbe = probe, probe
		w.create(pod)
		s := w.awaitRunning(pod)
		if early.Load() > 0 || probes.Load() == 0 || s.ContainerStatuses[0].RestartCount > 0 {
			t.Errorf("%d of %d probes came before the hook had ended, and the container was restarted %d times",
				early.Load(), probes.Load(), s.ContainerStatuses[0].RestartCount)
		}
	})
}

func TestPreStopHookRunsBeforeTheStop(t *testing.T) {
	var ran atomic.Bool
	config := fakecri.Config{NoEvents: true, Exec: func(context.Context, fakecri.Container, []string) fakecri.Answer {
		ran.Store(true)
		return fakecri.Answer{}
	}}
	inWorld(t, config, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"hook"}}}}
		w.create(pod)
		w.awaitRunning(pod)
		w.delete(pod, 30)
		w.awaitGone(pod)
		if !ran.Load() {
			t.Error("the preStop hook did not run")
		}
	})
}

func TestHookSurvivesTheRestartOfTheProcess(t *testing.T) {
	var ran atomic.Bool
	config := fakecri.Config{NoEvents: true, Exec: func(context.Context, fakecri.Container, []string) fakecri.Answer {
		ran.Store(true)
		return fakecri.Answer{}
	}}
	inWorld(t, config, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"hook"}}}}
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
		if !ran.Load() {
			t.Error("the preStop hook of a pod did not run whose spec nobody has any more")
		}
	})
}

func TestContainerThatFailsItsLivenessProbeIsRestarted(t *testing.T) {
	var sick atomic.Bool
	config := fakecri.Config{NoEvents: true, Exec: func(context.Context, fakecri.Container, []string) fakecri.Answer {
		if !sick.Load() {
			return fakecri.Answer{}
		}
		return fakecri.Answer{Code: 1, Stdout: "sick"}
	}}
	inWorld(t, config, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"check"}}},
			PeriodSeconds: 1, FailureThreshold: 3, TimeoutSeconds: 1, SuccessThreshold: 1,
		}
		w.create(pod)
		w.awaitRunning(pod)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := w.last(pod.UID).ContainerStatuses[0].RestartCount; n != 0 {
			t.Fatalf("got %d restarts of a healthy container", n)
		}
		sick.Store(true)
		w.await(pod, "restarted", func(s *corev1.PodStatus) bool { return s.ContainerStatuses[0].RestartCount > 0 })
		all := strings.Join(w.eventsOf(""), "\n")
		for _, want := range []string{"Unhealthy Liveness probe failed: sick (spec.containers{main})", "Killing Container main failed liveness probe, will be restarted (spec.containers{main})"} {
			if !strings.Contains(all, want) {
				t.Errorf("got events\n%s\nwant %q", all, want)
			}
		}
	})
}

func TestReadinessIsWhatTheProbeSaysAlsoAfterARestart(t *testing.T) {
	config := fakecri.Config{NoEvents: true}
	inWorld(t, config, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"check"}}},
			PeriodSeconds: 10, FailureThreshold: 3, TimeoutSeconds: 1, SuccessThreshold: 1, InitialDelaySeconds: 5,
		}
		w.create(pod)
		w.await(pod, "running, not ready", func(s *corev1.PodStatus) bool {
			return s.Phase == corev1.PodRunning && !s.ContainerStatuses[0].Ready && *s.ContainerStatuses[0].Started
		})
		w.awaitRunning(pod)
		time.Sleep(time.Minute)
		w.mu.Lock()
		w.reports[pod.UID] = w.reports[pod.UID][len(w.reports[pod.UID])-1:]
		w.mu.Unlock()
		w.restart(pod)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range w.reports[pod.UID] {
			if !s.ContainerStatuses[0].Ready {
				t.Errorf("a pod that was ready is reported as not ready after the restart of the process: %s", dump(&s))
			}
		}
	})
}

func TestEventOfTheRuntimeIsHeardAtOnce(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		synctest.Wait() // the events of the start reach their listener
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		time.Sleep(time.Minute)
		c, _ := w.Find("web", "main")
		before := len(w.Calls("ListContainers"))
		time.Sleep(time.Minute)
		if n := len(w.Calls("ListContainers")) - before; n > 7 {
			t.Errorf("got %d lists in a minute in which nothing happened, want one in 10 s", n)
		}
		w.Exit(c.ID, 1, "")
		synctest.Wait()
		if s := w.last(pod.UID); s.ContainerStatuses[0].RestartCount != 1 {
			t.Errorf("got %s right after the end of the container, want it started again", dump(s))
		}
		w.await(pod, "restarted", func(s *corev1.PodStatus) bool {
			return s.ContainerStatuses[0].RestartCount == 1 && s.ContainerStatuses[0].Ready
		})
	})
}
