// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

func secretEnv() []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "key"}}}, {Name: "PLAIN", Value: "plain words"},
	}
}

// TestUpdateOfAnUnknownPodIsNotFound: an update of an unknown pod returns NotFound, and an update of an image is
// refused.
func TestUpdateOfAnUnknownPodIsNotFound(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		p, _ := h.start(nil)
		pod := h.pod("web")
		if err := p.UpdatePod(t.Context(), pod.DeepCopy()); !errdefs.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
		h.create(p, pod)
		next := pod.DeepCopy()
		next.Labels = map[string]string{"a": "b"}
		if err := p.UpdatePod(t.Context(), next); err != nil {
			t.Errorf("a label: got %v", err)
		}
		next.Spec.Containers[0].Image = "two"
		for range 2 {
			if err := p.UpdatePod(t.Context(), next.DeepCopy()); !errdefs.IsInvalidInput(err) {
				t.Errorf("an image: got %v", err)
			}
		}
		if got, err := p.GetPod(t.Context(), "ns", "web"); err != nil || got.Labels["a"] != "b" || got.Spec.Containers[0].Image != "one" {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// TestListOfPodsIsAnErrorWhileListsFail: while lists fail, GetPods returns an error, GetPod returns the known
// pods unchanged, and GetPod of an unknown pod does not return NotFound.
func TestListOfPodsIsAnErrorWhileListsFail(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		p, _ := h.start(nil)
		h.create(p, h.pod("web"))
		time.Sleep(time.Minute)
		h.cloud.edit(func() { h.cloud.dark = true })
		time.Sleep(time.Minute)
		if got, err := p.GetPods(t.Context()); err == nil || errdefs.IsNotFound(err) {
			t.Errorf("got %v, %v", got, err)
		}
		if _, err := p.GetPod(t.Context(), "ns", "web"); err != nil {
			t.Errorf("got %v", err)
		}
		if _, err := p.GetPod(t.Context(), "ns", "other"); err == nil || errdefs.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
		if err := p.Ping(t.Context()); err == nil || p.AnswersForAllPods() {
			t.Errorf("Ping: %v", err)
		}
		h.cloud.edit(func() { h.cloud.dark = false })
		time.Sleep(2 * time.Minute)
		if got, err := p.GetPods(t.Context()); err != nil || len(got) != 1 || p.Ping(t.Context()) != nil {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// TestStopIsConfirmedByLists: the service forgets a stopped instance at once. The pod stays until lists lack it.
func TestStopIsConfirmedByLists(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		p, _ := h.start(nil)
		pod := h.pod("web")
		h.create(p, pod)
		time.Sleep(time.Minute)
		h.cloud.edit(func() { h.cloud.stop = func(vm) error { return errdefs.NotFound("no such machine") } })
		if err := p.DeletePod(t.Context(), pod.DeepCopy()); err != nil {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := p.GetPod(t.Context(), "ns", "web"); err != nil {
			t.Errorf("lists have it: got %v", err)
		}
		h.cloud.edit(func() {
			h.cloud.stop = func(vm) error { return errdefs.RetryAfter(errdefs.NotFound("no such path"), 7*time.Second) }
		})
		err := p.DeletePod(t.Context(), pod.DeepCopy())
		if after, _ := errdefs.RetryAfterOf(err); after != 7*time.Second || errdefs.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
		h.cloud.edit(func() { h.cloud.stop = nil })
		h.delete(p, pod)
	})
}

// TestStopIsConfirmedByTheEndOfTheInstance: a stopped pod is gone when its instance has ended, although lists
// still contain the instance. Until then, the pod has its deletion timestamp.
func TestStopIsConfirmedByTheEndOfTheInstance(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		p, _ := h.start(nil)
		pod := h.pod("web")
		h.create(p, pod)
		time.Sleep(time.Minute)
		h.cloud.edit(func() { h.cloud.stop = func(vm) error { return nil } })
		pod.DeletionTimestamp = new(metav1.Now())
		if err := p.DeletePod(t.Context(), pod.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got, err := p.GetPod(t.Context(), "ns", "web"); err != nil || got.DeletionTimestamp == nil {
			t.Errorf("it runs: got %v, %v", got, err)
		}
		h.cloud.mu.Lock()
		h.cloud.vms[0].ended = true
		h.cloud.mu.Unlock()
		time.Sleep(time.Minute)
		if got, err := p.GetPods(t.Context()); err != nil || len(got) != 0 {
			t.Errorf("it has ended: got %v, %v", got, err)
		}
	})
}

// TestStopOfAnInstanceThatIsNotShownYetIsAskedAgain: the service first answers that the instance does not exist,
// and shows it later. The provider repeats the stop.
func TestStopOfAnInstanceThatIsNotShownYetIsAskedAgain(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		p, _ := h.start(nil)
		pod := h.pod("web")
		h.create(p, pod)
		h.cloud.stop = func(v vm) error {
			if time.Since(v.made) < lag {
				return errdefs.NotFound("no such machine")
			}
			h.cloud.vms = nil
			return nil
		}
		h.delete(p, pod)
		if _, there := h.cloud.count(); there != 0 {
			t.Errorf("%d are left", there)
		}
	})
}

// TestSecondInstanceIsStopped: if a pod has two instances, the provider stops the later one.
func TestSecondInstanceIsStopped(t *testing.T) {
	bubble(t, AgainMakesAnother, func(t *testing.T, h *home) {
		p, _ := h.start(nil)
		pod := h.pod("web")
		h.create(p, pod)
		time.Sleep(time.Second)
		h.cloud.make(&Inputs{Pod: pod})
		time.Sleep(10 * time.Minute)
		if _, there := h.cloud.count(); there != 1 || h.cloud.vms[0].id != "vm-1" {
			t.Errorf("there are %v", h.cloud.vms)
		}
	})
}

// TestRequestsThatTheServiceLacksAreRefused: for an existing pod, the error names the missing feature; for an
// unknown pod, the error is NotFound.
func TestRequestsThatTheServiceLacksAreRefused(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		p, _ := h.start(nil, func(c *Config) { c.Instead = map[Request]string{Exec: "use logs"} })
		h.create(p, h.pod("web"))
		for request, ask := range map[Request]func(name, container string) error{
			Logs: func(name, container string) error {
				_, err := p.GetContainerLogs(t.Context(), "ns", name, container, api.ContainerLogOpts{})
				return err
			},
			Exec: func(name, container string) error {
				return p.RunInContainer(t.Context(), "ns", name, container, []string{"true"}, nil)
			},
			Attach: func(name, container string) error {
				return p.AttachToContainer(t.Context(), "ns", name, container, nil)
			},
			PortForward: func(name, container string) error {
				if container != "main" {
					return errdefs.NotFound("it has none")
				}
				return p.PortForward(t.Context(), "ns", name, 80, nil)
			},
		} {
			if err := ask("web", "main"); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "Cloud has no "+string(request)) {
				t.Errorf("%s: got %v", request, err)
			}
			if err := ask("other", "main"); !errdefs.IsNotFound(err) {
				t.Errorf("%s of another pod: got %v", request, err)
			}
			if err := ask("web", "side"); !errdefs.IsNotFound(err) {
				t.Errorf("%s of another container: got %v", request, err)
			}
		}
		if err := p.RunInContainer(t.Context(), "ns", "web", "main", nil, nil); !strings.Contains(err.Error(), ": use logs") {
			t.Errorf("got %v", err)
		}
	})
}

// able is a cloud that supports every request.
type able struct {
	*cloud
	fails error
}

func (a able) Logs(context.Context, Target[vm], api.ContainerLogOpts) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("line\n")), a.fails
}
func (a able) Exec(context.Context, Target[vm], []string, api.AttachIO) error { return a.fails }

// TestErrorsOfRequestsAreTheDriversOwn: the provider returns the driver's errors and exit codes unchanged,
// because the kubelet API adds the request and the container.
func TestErrorsOfRequestsAreTheDriversOwn(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		driver := &able{cloud: h.cloud, fails: errors.New("no route")}
		p, _ := h.start(driver)
		h.create(p, h.pod("web"))
		_, err := p.GetContainerLogs(t.Context(), "ns", "web", "main", api.ContainerLogOpts{})
		if !errors.Is(err, driver.fails) || err.Error() != "no route" {
			t.Errorf("got %v", err)
		}
		if err := p.RunInContainer(t.Context(), "ns", "web", "main", nil, nil); !errors.Is(err, driver.fails) || err.Error() != "no route" {
			t.Errorf("got %v", err)
		}
		driver.fails = utilexec.CodeExitError{Err: errors.New("exit 3"), Code: 3}
		if err := p.RunInContainer(t.Context(), "ns", "web", "main", nil, nil); err != driver.fails {
			t.Errorf("got %v", err)
		}
		if _, err := p.GetContainerLogs(t.Context(), "ns", "web", "main", api.ContainerLogOpts{Previous: true}); !errdefs.IsNotFound(err) {
			t.Errorf("the log of no earlier run: got %v", err)
		}
	})
}
