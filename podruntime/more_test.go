// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

func TestResourcesChangeInARunningContainer(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		pod.Spec.Containers[0].Resources = cpu("100m", "200m")
		w.create(pod)
		w.awaitRunning(pod)
		before, _ := w.Find("web", "main")
		pod.Spec.Containers[0].Resources = cpu("150m", "400m")
		if err := w.runtime.UpdatePod(t.Context(), pod.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		s := w.await(pod, "resized", func(s *corev1.PodStatus) bool {
			r := s.ContainerStatuses[0].Resources
			return r != nil && r.Limits.Cpu().String() == "400m"
		})
		after, _ := w.Find("web", "main")
		if after.ID != before.ID || s.ContainerStatuses[0].RestartCount != 0 {
			t.Error("the container was started again for a change of its CPU limit")
		}
		if got := after.Resources; got.CpuQuota != 40_000 || got.CpuPeriod != 100_000 || got.CpuShares != 153 {
			t.Errorf("got resources %v, want a quota of 40000 and 153 shares", got)
		}
	})
}

// TestPublishedB1ReplacedContainerNeverEnds: the image of a container changes in a pod that never restarts. No
// report says that the container has ended (tektoncd/pipeline: cmd/nop/README.md).
func TestPublishedB1ReplacedContainerNeverEnds(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure} {
		inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
			w.Script(fakecri.ByName("main"), fakecri.Life{CleanStop: true, Stops: time.Second})
			w.AddImage(fakecri.Image{Name: "nop", Size: 7})
			pod := podOf("task", "main")
			pod.Spec.RestartPolicy = policy
			w.create(pod)
			w.awaitRunning(pod)
			w.heard = func(told *corev1.Pod) {
				if s := told.Status.ContainerStatuses[0]; s.State.Terminated != nil || told.Status.Phase != corev1.PodRunning {
					t.Errorf("it is told that the pod is %s and its container has ended: %+v", told.Status.Phase, s.State)
				}
			}
			pod.Spec.Containers[0].Image = "nop"
			if err := w.runtime.UpdatePod(t.Context(), pod.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			w.await(pod, "running again", func(s *corev1.PodStatus) bool {
				c := s.ContainerStatuses[0]
				return c.State.Running != nil && c.Ready && c.RestartCount == 1 && c.LastTerminationState.Terminated != nil
			})
			w.heard = nil
			w.delete(pod, 5)
			w.awaitGone(pod)
		})
	}
}

func cpu(request, limit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(request)},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)},
	}
}

func TestEphemeralContainerSeesTheProcessesOfItsTarget(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		main, _ := w.Find("web", "main")
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "app", ImagePullPolicy: corev1.PullIfNotPresent}, TargetContainerName: "main",
		}}
		if err := w.runtime.UpdatePod(t.Context(), pod.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		w.await(pod, "being debugged", func(s *corev1.PodStatus) bool {
			return len(s.EphemeralContainerStatuses) == 1 && s.EphemeralContainerStatuses[0].State.Running != nil
		})
		debug, _ := w.Find("web", "debug")
		if got := debug.Config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetTargetId(); got != main.ID {
			t.Errorf("got target %q, want %q", got, main.ID)
		}
		if len(w.eventsOf("Started Container started (spec.ephemeralContainers{debug})")) != 1 {
			t.Errorf("got events %v", w.eventsOf(""))
		}
	})
}

func TestSandboxThatFailsIsTriedAgain(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.Fail("RunPodSandbox", 2, status.Error(codes.Unknown, "no network"))
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		want := "FailedCreatePodSandBox Failed to create pod sandbox: rpc error: code = Unknown desc = no network"
		if !slices.Contains(w.eventsOf(""), want) {
			t.Errorf("got events %v, want %q", w.eventsOf(""), want)
		}
	})
}

func TestAnswersThatAreLostDoNotMakeASecondContainer(t *testing.T) {
	for _, method := range []string{"RunPodSandbox", "CreateContainer", "StartContainer"} {
		t.Run(method, func(t *testing.T) {
			inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
				w.Lose(method, 1, status.Error(codes.DeadlineExceeded, "context deadline exceeded"))
				pod := podOf("web", "main")
				w.create(pod)
				w.awaitRunning(pod)
				time.Sleep(time.Minute)
				synctest.Wait()
				running := 0
				for _, c := range w.Containers() {
					if stateOf(c.State) == 2 {
						running++
					}
				}
				ready := 0
				for _, s := range w.Sandboxes() {
					if s.Ready {
						ready++
					}
				}
				if running != 1 || ready != 1 {
					t.Errorf("got %d running containers in %d ready sandboxes, want one of each; calls: %v", running, ready, w.Changes())
				}
			})
		})
	}
}

func TestSandboxThatDiesIsReplaced(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		w.Reboot()
		w.await(pod, "running again", func(s *corev1.PodStatus) bool {
			return s.Phase == corev1.PodRunning && s.ContainerStatuses[0].Ready && s.ContainerStatuses[0].RestartCount == 1
		})
		if len(w.eventsOf("SandboxChanged Pod sandbox changed, it will be killed and re-created.")) != 1 {
			t.Errorf("got events %v", w.eventsOf(""))
		}
	})
}

func TestPodIsDeletedWhileItsImageIsPulled(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.Publish(fakecri.Image{Name: "huge", Takes: time.Hour})
		pod := podOf("web", "main")
		pod.Spec.Containers[0].Image = "huge"
		w.create(pod)
		w.await(pod, "pulling", func(*corev1.PodStatus) bool { return len(w.eventsOf("Pulling")) == 1 })
		begin := time.Now()
		w.delete(pod, 30)
		w.awaitGone(pod)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("the pod was gone after %v, want it not to wait for the image", took)
		}
	})
}

func TestInitContainersRunBeforeTheOthers(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		always := corev1.ContainerRestartPolicyAlways
		pod := podOf("web", "first", "proxy", "main")
		pod.Spec.InitContainers, pod.Spec.Containers = pod.Spec.Containers[:2], pod.Spec.Containers[2:]
		pod.Spec.InitContainers[1].RestartPolicy = &always
		w.Script(fakecri.ByName("first"), fakecri.ExitAfter(time.Second, 0))
		w.create(pod)
		w.awaitRunning(pod)
		want := []string{
			"RunPodSandbox default/web", "CreateContainer default/web/first", "StartContainer default/web/first",
			"CreateContainer default/web/proxy", "StartContainer default/web/proxy", "CreateContainer default/web/main", "StartContainer default/web/main",
		}
		if !slices.Equal(want, w.Changes()) {
			t.Errorf("got calls %v, want %v", w.Changes(), want)
		}
		w.delete(pod, 30)
		w.awaitGone(pod)
		var stops []string
		for _, c := range w.Changes() {
			if strings.HasPrefix(c, "StopContainer") {
				stops = append(stops, c)
			}
		}
		if want := []string{"StopContainer default/web/main", "StopContainer default/web/proxy"}; !slices.Equal(stops, want) {
			t.Errorf("got %v, want %v", stops, want)
		}
	})
}

func TestLogsOfTheContainerThatIsAskedFor(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.Script(fakecri.ByName("main"), fakecri.Life{Ends: true, For: time.Second, Code: 1, Output: []string{"one"}}, fakecri.Life{Output: []string{"two"}})
		pod := podOf("web", "main")
		w.create(pod)
		read := func(previous bool) (string, error) {
			stream, err := w.runtime.GetContainerLogs(t.Context(), "default", "web", "main", api.ContainerLogOpts{Previous: previous})
			if err != nil {
				return "", err
			}
			text, err := io.ReadAll(stream)
			return string(text), errors.Join(err, stream.Close())
		}
		w.awaitRunning(pod)
		if _, err := read(true); !errdefs.IsInvalidInput(err) || err.Error() != `previous terminated container "main" in pod "web" not found` {
			t.Errorf("got %v, want an error that there is no previous container", err)
		}
		w.await(pod, "restarted", func(s *corev1.PodStatus) bool { return s.ContainerStatuses[0].RestartCount == 1 })
		if text, err := read(true); !strings.Contains(text, "one") || err != nil {
			t.Errorf("got %q, %v; want the log of the previous container", text, err)
		}
		if text, err := read(false); !strings.Contains(text, "two") || err != nil {
			t.Errorf("got %q, %v; want the log of the container", text, err)
		}
		if _, err := w.runtime.GetContainerLogs(t.Context(), "default", "web", "other", api.ContainerLogOpts{}); !errdefs.IsNotFound(err) {
			t.Errorf("got %v for a container that is not in the pod, want not-found", err)
		}
	})
}

// TestLogsOfAPodThatIsNotReadYetAreNotMissing: if only the sandbox of a pod is known, its containers are
// unknown, not missing.
func TestLogsOfAPodThatIsNotReadYetAreNotMissing(t *testing.T) {
	known := podOf("web", "main")
	for name, tt := range map[string]struct {
		pod     *corev1.Pod
		missing bool
	}{
		"nothing is known of it": {&corev1.Pod{}, false},
		"its status is not read": {known, false},
		"it has other ones":      {podOf("web", "other"), true},
	} {
		if _, err := loggedInstance(tt.pod, "main", false); errdefs.IsNotFound(err) != tt.missing || errdefs.IsInvalidInput(err) == tt.missing {
			t.Errorf("%s: got %v, want not-found %t", name, err, tt.missing)
		}
	}
}
