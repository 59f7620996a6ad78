// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// stepwise is a provider that starts containers one by one, and records its inputs.
type stepwise struct {
	memory.Notifying
	got *stepwiseGot
}

type stepwiseGot struct {
	mu      sync.Mutex
	objects PodObjects                                                     // guarded by mu
	pods    map[string]*corev1.Pod                                         // guarded by mu; the last pod by method
	asked   func(ctx context.Context, objects PodObjects, pod *corev1.Pod) // called in CreatePod; may be nil
	run     func(ctx context.Context) error                                // nil waits for the end of ctx
}

func (s stepwise) UsePodObjects(o PodObjects) {
	s.got.mu.Lock()
	defer s.got.mu.Unlock()
	s.got.objects = o
}

func (s stepwise) note(method string, pod *corev1.Pod) PodObjects {
	s.got.mu.Lock()
	defer s.got.mu.Unlock()
	s.got.pods[method] = pod.DeepCopy()
	return s.got.objects
}

// pod returns the pod of the last call of method, and forgets it.
func (g *stepwiseGot) pod(method string) *corev1.Pod {
	g.mu.Lock()
	defer g.mu.Unlock()
	pod := g.pods[method]
	delete(g.pods, method)
	return pod
}

func (s stepwise) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if objects := s.note("create", pod); s.got.asked != nil {
		s.got.asked(ctx, objects, pod)
	}
	return s.Notifying.CreatePod(ctx, pod)
}

func (s stepwise) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	s.note("update", pod)
	return s.Notifying.UpdatePod(ctx, pod)
}

func (s stepwise) RunInBackground(ctx context.Context) error {
	if s.got.run != nil {
		return s.got.run(ctx)
	}
	<-ctx.Done()
	return nil
}

// startsOneByOne replaces the provider by a stepwise provider.
func startsOneByOne(got *stepwiseGot) func(*PodControllerConfig) {
	got.pods = map[string]*corev1.Pod{}
	return func(cfg *PodControllerConfig) { cfg.Provider = stepwise{cfg.Provider.(memory.Notifying), got} }
}

// wanting returns a pod whose environment must be resolved.
func wanting() *corev1.Pod {
	pod := bound("p", "1")
	c := &pod.Spec.Containers[0]
	c.Args = []string{"--where=$(IP)", "--key=$(KEY)"}
	c.Env = []corev1.EnvVar{
		{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "KEY", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "m"}, Key: "k",
		}}},
	}
	pod.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "i", Env: []corev1.EnvVar{{Name: "S", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Key: "k"},
	}}}}}
	return pod
}

// unresolved fails the test unless the pod has the environment of the spec.
func unresolved(t *testing.T, when string, pod *corev1.Pod) {
	t.Helper()
	if pod == nil {
		t.Errorf("%s: the provider was not told of the pod", when)
		return
	}
	c := pod.Spec.Containers[0]
	if len(c.Env) != 2 || c.Env[0].ValueFrom == nil || c.Env[1].ValueFrom == nil || c.Args[0] != "--where=$(IP)" {
		t.Errorf("%s: the provider has %+v, want the container as it is in the spec", when, c)
	}
}

// TestPodObjectsUserGetsPodsAsTheyAre holds this also after a restart, when it receives each pod again.
func TestPodObjectsUserGetsPodsAsTheyAre(t *testing.T) {
	b, got := memory.New(), &stepwiseGot{}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(wanting())
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
		unresolved(t, "at first", got.pod("create"))
		w.halt()
		w.start()
		w.pass(time.Minute)
		unresolved(t, "after a restart", got.pod("update"))
		w.pass(time.Hour)
		if again := got.pod("update"); again != nil {
			t.Error("the provider was told again of a pod that had not changed")
		}
		if created := got.pod("create"); created != nil {
			t.Error("the pod was created twice")
		}
	}, startsOneByOne(got))
}

// TestPodObjectsResolvesOneContainer: a missing object of another container does not matter, and the addresses come from the argument.
func TestPodObjectsResolvesOneContainer(t *testing.T) {
	b, got := memory.New(), &stepwiseGot{}
	var c, first *corev1.Container
	var errC, errFirst, errNone error
	got.asked = func(ctx context.Context, objects PodObjects, pod *corev1.Pod) {
		pod = pod.DeepCopy()
		pod.Status.PodIP, pod.Status.PodIPs = "10.1.2.3", []corev1.PodIP{{IP: "10.1.2.3"}}
		c, errC = objects.Container(ctx, pod, "c")
		first, errFirst = objects.Container(ctx, pod, "first")
		_, errNone = objects.Secret(ctx, pod, "none")
	}
	inWorld(t, b, func(w *world) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "m"}, Data: map[string]string{"k": "v"}}
		if err := w.objects.Tracker().Add(cm); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.api.Create(wanting())
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
	}, startsOneByOne(got))
	if errC != nil || c == nil || strings.Join(c.Args, " ") != "--where=10.1.2.3 --key=v" || c.Env[0].Value != "10.1.2.3" || c.Env[1].Value != "v" {
		t.Errorf("container c is %+v, %v; want it with the address and the key", c, errC)
	}
	if errFirst == nil || !strings.Contains(errFirst.Error(), "none") {
		t.Errorf("container first is %+v, %v; want an error that names the secret", first, errFirst)
	}
	if !apierrors.IsNotFound(errNone) {
		t.Errorf("the secret that does not exist: %v, want not-found", errNone)
	}
}

// TestWorkInTheBackgroundThatEndsFailsRun: Run returns its error, or an error because it ended early.
func TestWorkInTheBackgroundThatEndsFailsRun(t *testing.T) {
	broken := errors.New("the socket is gone")
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"with an error": {broken, "run pod controller: the provider's work in the background: the socket is gone"},
		"without":       {nil, "run pod controller: the provider's work in the background: it returned while the node runs"},
	} {
		t.Run(name, func(t *testing.T) {
			got := &stepwiseGot{run: func(ctx context.Context) error {
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
				}
				return tt.err
			}}
			inWorld(t, memory.New(), func(w *world) {
				w.start()
				w.pass(59 * time.Second)
				select {
				case <-w.ctl.Done():
					t.Errorf("Run ended early: %v", w.ctl.Err())
				default:
				}
				w.pass(2 * time.Second)
				err := <-w.done
				if err == nil || err.Error() != tt.want || !errors.Is(err, tt.err) && tt.err != nil {
					t.Errorf("Run returned %v, want %s", err, tt.want)
				}
				w.done <- nil // for halt
			}, startsOneByOne(got))
		})
	}
}
