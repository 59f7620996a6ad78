// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

func puller(t *testing.T, runtime *fakecri.Runtime) *Puller {
	t.Helper()
	p, err := New(Config{Images: runtime.Client(), Event: func(*corev1.Pod, string, string, string, string) {}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func request(uid types.UID, image string) Request {
	return Request{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}}, Container: "c", Image: image, Policy: corev1.PullAlways}
}

// TestRegistryThatHangsStopsOnlyItsOwnImages: a registry that hangs has the maximum number of pulls in progress, and more pulls wait. Images of other
// registries are pulled.
func TestRegistryThatHangsStopsOnlyItsOwnImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime := fakecri.New(fakecri.Config{})
		runtime.AddImage(fakecri.Image{Name: "good.example/app"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := puller(t, runtime)
		runtime.Hang("PullImage", parallel)
		for i := range parallel + 3 {
			go func() { _, _ = p.Ensure(ctx, request("u", fmt.Sprintf("bad.example/app:%d", i))) }() // it ends with ctx
		}
		synctest.Wait()
		if n := len(runtime.Calls("PullImage")); n != parallel {
			t.Errorf("%d images are pulled at the same time from one registry, want %d", n, parallel)
		}
		soon, done := context.WithTimeout(ctx, time.Minute)
		defer done()
		if _, err := p.Ensure(soon, request("u2", "good.example/app")); err != nil {
			t.Errorf("another registry: %v", err)
		}
		cancel()
		synctest.Wait()
		if len(p.pulling.all) != 0 {
			t.Errorf("when nobody pulls, %d registries are remembered", len(p.pulling.all))
		}
	})
}

// TestNothingIsRememberedOfAPodThatIsGone: Forget drops the results and delays of a pod, including those of its
// earlier images.
func TestNothingIsRememberedOfAPodThatIsGone(t *testing.T) {
	runtime := fakecri.New(fakecri.Config{})
	p := puller(t, runtime)
	runtime.Fail("PullImage", -1, errors.New("no"))
	for _, image := range []string{"app:1", "app:2", "volume"} {
		if _, err := p.Ensure(t.Context(), request("gone", image)); err == nil {
			t.Errorf("%s was pulled", image)
		}
	}
	if _, err := p.Ensure(t.Context(), request("other", "app:1")); err == nil {
		t.Error("app:1 was pulled")
	}
	p.Forget("gone")
	if len(p.last.all) != 1 || p.delays.Get(keyOf("gone", "app:2")) != 0 || p.delays.Get(keyOf("other", "app:1")) == 0 {
		t.Errorf("after the pod is gone there is %v, with a delay of %v", p.last.all, p.delays.Get(keyOf("gone", "app:2")))
	}
}

func TestRegistryOfAnImage(t *testing.T) {
	for image, want := range map[string]string{
		"busybox:1": "", "team/app": "", "registry.example/app": "registry.example", "localhost:5000/team/app:2": "localhost:5000",
	} {
		if got := registryHost(image); got != want {
			t.Errorf("%s: got %q, want %q", image, got, want)
		}
	}
}
