// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// harness is a running store in front of an API in memory. It runs in a synctest bubble, which also fails the test if goroutines are left at its end.
type harness struct {
	*Store
	t      *testing.T
	api    *fake.Clientset
	cancel context.CancelFunc
	done   chan error

	mu      sync.Mutex
	changed []string // pods that OnChange was called for
	watches int      // open
	fail    error    // error of every get and list
}

func newHarness(t *testing.T, existing ...runtime.Object) *harness {
	h := &harness{t: t, api: fake.NewClientset(existing...), done: make(chan error, 1)}
	h.api.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		read := action.GetVerb() == "get" || action.GetVerb() == "list"
		return read && h.fail != nil, nil, h.fail
	})
	h.api.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := h.api.Tracker().Watch(action.GetResource(), action.GetNamespace(), action.(clienttesting.WatchActionImpl).ListOptions)
		if err != nil {
			return true, nil, err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.watches++
		return true, &countedWatch{Interface: w, closed: func() { h.mu.Lock(); defer h.mu.Unlock(); h.watches-- }}, nil
	})
	h.Store = NewStore(h.api)
	h.OnChange(func(pod types.NamespacedName) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.changed = append(h.changed, pod.Name)
	})
	return h
}

func (h *harness) run() *harness {
	var ctx context.Context
	ctx, h.cancel = context.WithCancel(h.t.Context())
	go func() { h.done <- h.Run(ctx) }()
	return h
}

func (h *harness) end() {
	h.t.Helper()
	h.cancel()
	if err := <-h.done; err != nil {
		h.t.Errorf("Run: %v", err)
	}
	if n := h.openWatches(); n != 0 {
		h.t.Errorf("%d watches are open after Run", n)
	}
}

func (h *harness) openWatches() int {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watches
}

func (h *harness) setFail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail = err
}

// takeChanged returns the pods that were reported since the last call.
func (h *harness) takeChanged() []string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := h.changed
	h.changed = nil
	slices.Sort(changed)
	return changed
}

// requests returns the requests since the last call, by verb.
func (h *harness) requests() map[string]int {
	synctest.Wait()
	count := map[string]int{}
	for _, action := range h.api.Actions() {
		count[action.GetVerb()]++
	}
	h.api.ClearActions()
	return count
}

type countedWatch struct {
	watch.Interface
	once   sync.Once
	closed func()
}

func (w *countedWatch) Stop() {
	w.Interface.Stop()
	w.once.Do(w.closed)
}

func configMapNamed(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"k": value}}
}

func secretNamed(name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{"k": []byte(value)}}
}

// podUsing returns a pod that references ConfigMaps by envFrom.
func podUsing(name string, configMaps ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{}}},
	}
	for _, cm := range configMaps {
		pod.Spec.Containers[0].EnvFrom = append(pod.Spec.Containers[0].EnvFrom, corev1.EnvFromSource{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: cm}}})
	}
	return pod
}

// value reads a ConfigMap and returns its value or the error.
func (h *harness) value(name string) (string, error) {
	h.t.Helper()
	cm, err := h.ConfigMap(h.t.Context(), "ns", name)
	if err != nil {
		return "", err
	}
	return cm.Data["k"], nil
}

func (h *harness) wantValue(name, want string) {
	h.t.Helper()
	if got, err := h.value(name); err != nil || got != want {
		h.t.Errorf("ConfigMap %s: %q, %v; want %q", name, got, err, want)
	}
}
