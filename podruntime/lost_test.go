// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

// logger records warnings with their fields.
type logger struct {
	log.Logger
	w    *world
	with string
}

func (l logger) WithField(key string, value any) log.Logger {
	l.with += fmt.Sprintf(" %s=%v", key, value)
	return l
}

func (l logger) WithError(err error) log.Logger { return l.WithField("error", err) }

func (l logger) Warn(args ...any) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.w.logged = append(l.w.logged, fmt.Sprint(args...)+l.with)
}

// awaitLogged waits until a warning with all these texts was logged.
func (w *world) awaitLogged(texts ...string) {
	w.t.Helper()
	var logged []string
	for end := time.Now().Add(time.Hour); time.Now().Before(end); time.Sleep(time.Second) {
		w.mu.Lock()
		logged = append(logged[:0], w.logged...)
		w.mu.Unlock()
	line:
		for _, line := range logged {
			for _, text := range texts {
				if !strings.Contains(line, text) {
					continue line
				}
			}
			return
		}
	}
	w.t.Fatalf("got warnings %q, want one with %q", logged, texts)
}

// TestPodThatCannotBeReadIsListed: GetPods does not wait for an unreadable pod, and does not omit it.
func TestPodThatCannotBeReadIsListed(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		w.kill()
		for name, fault := range map[string]func(){
			"fails": func() { w.Fail("ContainerStatus", -1, status.Error(codes.Internal, "corrupt")) },
			"hangs": func() { w.Hang("ContainerStatus", 1000) },
		} {
			fault()
			w.start()
			soon, cancel := context.WithTimeout(t.Context(), 45*time.Second)
			got, err := w.runtime.GetPods(soon)
			cancel()
			if err != nil || len(got) != 1 || got[0].UID != pod.UID || got[0].Namespace != pod.Namespace || len(got[0].Status.ContainerStatuses) > 0 {
				t.Errorf("a container %s: got %v, %v; want the pod, without a word on how it is", name, got, err)
			}
			w.Fail("ContainerStatus", 0, nil)
			w.kill()
		}
		w.start()
		w.restart(pod)
		if s := w.awaitRunning(pod); s.ContainerStatuses[0].RestartCount > 0 {
			t.Errorf("the container was restarted %d times", s.ContainerStatuses[0].RestartCount)
		}
	})
}

func TestContainersThatAreLostAreNotProbedAnyMore(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"check"}}},
			PeriodSeconds: 1, FailureThreshold: 3, TimeoutSeconds: 1, SuccessThreshold: 1,
		}
		w.create(pod)
		w.awaitRunning(pod)
		time.Sleep(1500 * time.Millisecond) // between two lists
		lost, _ := w.Find("web", "main")
		for _, s := range w.Sandboxes() { // another program removes all objects of the pod between two lists
			client := w.Client()
			if err := errors.Join(client.StopPodSandbox(t.Context(), s.ID), client.RemovePodSandbox(t.Context(), s.ID)); err != nil {
				t.Fatal(err)
			}
		}
		w.await(pod, "running again", func(s *corev1.PodStatus) bool {
			c := &s.ContainerStatuses[0]
			return c.State.Running != nil && trimScheme(c.ContainerID) != lost.ID
		})
		calls := func() (n int) {
			for _, c := range w.Calls("ExecSync") {
				if strings.Contains(c.String(), lost.ID) {
					n++
				}
			}
			return n
		}
		before := calls()
		time.Sleep(time.Minute)
		if after := calls(); after != before {
			t.Errorf("the container that is lost was probed %d times more", after-before)
		}
	})
}

func TestStartLeavesNothingBehindInTheContextOfTheNode(t *testing.T) {
	hooks := make(chan context.Context, 1)
	config := fakecri.Config{NoEvents: true, Exec: func(ctx context.Context, _ fakecri.Container, _ []string) fakecri.Answer {
		hooks <- ctx
		return fakecri.Answer{}
	}}
	inWorld(t, config, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"hook"}}}}
		w.create(pod)
		w.awaitRunning(pod)
		if err := (<-hooks).Err(); err == nil {
			t.Error("the context of a start that has ended still lives: those of all restarts would add up")
		}
	})
}

func TestRemovalThatFailsIsLogged(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		pods := w.root + "/pods/pods"
		if err := os.Rename(pods, pods+"-aside"); err != nil {
			t.Fatal(err)
		}
		write(t, pods, "no directory: nothing can be removed here")
		w.Fail("RemovePodSandbox", 2, errors.New("device or resource busy"))
		w.delete(pod, 1)
		w.awaitLogged("failed to remove the rest of the pod", "default/web", "not a directory")
		if s := w.last(pod.UID); s.Phase != corev1.PodRunning {
			t.Errorf("got phase %s while volumes are there, want Running", s.Phase)
		}
		if err := errors.Join(os.Remove(pods), os.Rename(pods+"-aside", pods)); err != nil {
			t.Fatal(err)
		}
		w.awaitGone(pod)
		w.awaitLogged("failed to remove the rest of the pod", "default/web", "device or resource busy")
	})
}

func TestPodThatTheRuntimeDoesNotTellOfIsLogged(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		w.Fail("ContainerStatus", 3, status.Error(codes.Internal, "the shim does not answer"))
		c, _ := w.Find("web", "main")
		w.Exit(c.ID, 1, "")
		w.awaitLogged("default/web", "the shim does not answer")
		w.await(pod, "restarted", func(s *corev1.PodStatus) bool { return s.ContainerStatuses[0].RestartCount == 1 })
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.logged) != 1 {
			t.Errorf("got warnings %q, want one for three failures", w.logged)
		}
	})
}

func TestPodThatNobodyKnowsIsFoundInAListThatIsAsTheLastOne(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		time.Sleep(3 * time.Second)
		lost := w.runtime.workers.findWorker(pod.UID)
		w.runtime.workers.dropWorker(lost) // as if the worker had ended just before
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if now := w.runtime.workers.findWorker(pod.UID); now == nil || now == lost {
			t.Errorf("got worker %p for a pod that the runtime has, want a new one", now)
		}
	})
}

func TestMessagesAreCutInACopy(t *testing.T) {
	shared := &corev1.ContainerStateTerminated{Message: strings.Repeat("m", maxMessages)}
	s := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{State: corev1.ContainerState{Terminated: shared}}, {LastTerminationState: corev1.ContainerState{Terminated: shared}},
	}}
	limitMessages(&s)
	if len(shared.Message) != maxMessages {
		t.Error("a message was cut in a status that others may be reading")
	}
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if state.Terminated != nil && len(state.Terminated.Message) != maxMessages/2 {
				t.Errorf("got a message of %d bytes, want %d", len(state.Terminated.Message), maxMessages/2)
			}
		}
	}
}

func TestSandboxesThatAreOfNoUseAreReplacedWithDelayAndDoNotPileUp(t *testing.T) {
	const useless = 30
	config := fakecri.Config{NoEvents: true, IPs: func(n int) []string {
		if n <= useless {
			return nil
		}
		return []string{"10.0.0.1"}
	}}
	inWorld(t, config, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		w.create(pod)
		begin := time.Now()
		time.Sleep(useless / 2 * time.Second)
		synctest.Wait()
		if n := len(w.Sandboxes()); n > 3 {
			t.Errorf("got %d sandboxes after %v, want no more than 3", n, useless/2*time.Second)
		}
		w.awaitRunning(pod)
		if took := time.Since(begin); took < useless*time.Second {
			t.Errorf("%d sandboxes without an address were replaced within %v, want one in a second", useless, took)
		}
		if n := len(w.Sandboxes()); n != 1 {
			t.Errorf("got %d sandboxes of a pod that runs, want 1", n)
		}
	})
}

func TestLogsAreRemovedBeforeTheSandboxThatTellsOfThem(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		logs := w.runtime.workers.exec.settings.LogDirectory(pod)
		if !onDisk(logs) {
			t.Fatalf("%s is not there", logs)
		}
		w.Hang("RemovePodSandbox", 1)
		w.delete(pod, 1)
		for len(w.Calls("RemovePodSandbox")) == 0 {
			time.Sleep(time.Second)
		}
		if onDisk(logs) {
			t.Errorf("%s is there while the sandbox is removed: after a crash it would stay for ever", logs)
		}
		w.awaitGone(pod)
	})
}

func TestTerminationMessageIsNoneOfAnotherFile(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		secret, words := w.root+"/secret", w.runtime.workers.exec.messages.file(pod.UID, "main", 0)
		write(t, secret, "the secret of somebody else")
		if err := errors.Join(os.Remove(words), os.Symlink(secret, words)); err != nil {
			t.Fatal(err)
		}
		c, _ := w.Find("web", "main")
		w.Exit(c.ID, 1, "")
		s := w.await(pod, "restarted", func(s *corev1.PodStatus) bool { return s.ContainerStatuses[0].RestartCount == 1 })
		if end := s.ContainerStatuses[0].LastTerminationState.Terminated; end == nil || !strings.Contains(end.Message, "Error on reading termination log") {
			t.Errorf("got last state %v, want no words of another file", end)
		}
	})
}

func TestDeletedPodDoesNotWaitForItsSandbox(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.Hang("RunPodSandbox", 1)
		pod := podOf("web", "main")
		w.create(pod)
		time.Sleep(time.Second)
		begin := time.Now()
		w.delete(pod, 30)
		w.awaitGone(pod)
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("the end of a pod whose sandbox is not made took %v, want less than its grace period", took)
		}
		if events := w.eventsOf("FailedCreatePodSandBox"); len(events) > 0 {
			t.Errorf("got events %q for a sandbox that nobody wanted any more", events)
		}
	})
}

func TestNodeThatStopsSaysNothingAboutPods(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		starting, ending := podOf("starting", "one"), podOf("ending", "two")
		w.create(ending)
		w.awaitRunning(ending)
		w.Hang("CreateContainer", 1)
		w.create(starting)
		w.Hang("StopContainer", 1)
		w.delete(ending, 30)
		time.Sleep(time.Second)
		before := len(w.eventsOf(""))
		w.kill()
		if events := w.eventsOf("")[before:]; len(events) > 0 {
			t.Errorf("got events %q when the node stopped, want none", events)
		}
		w.start()
	})
}

func TestPodsAreNamedByTheirUIDOnDisk(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		for _, uid := range []types.UID{"", ".", "..", "../other", "a/b"} {
			pod := podOf("web", "main")
			pod.UID = uid
			if err := w.runtime.CreatePod(t.Context(), pod); !errdefs.IsInvalidInput(err) {
				t.Errorf("UID %q: got %v, want an error of the kind invalid input", uid, err)
			}
		}
	})
}
