// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	utilexec "k8s.io/utils/exec"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// objects are the objects of a test's Kubernetes cluster.
type objects struct {
	configMap map[string][]byte
	secret    map[string][]byte
}

func (o objects) ConfigMap(_ context.Context, _ *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	if o.configMap == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("configmap"), name)
	}
	return &corev1.ConfigMap{BinaryData: o.configMap}, nil
}

func (o objects) Secret(context.Context, *corev1.Pod, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: o.secret}, nil
}

func (o objects) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name != name {
				continue
			}
			c := list[i].DeepCopy()
			for j := range c.Env {
				if e := &c.Env[j]; e.ValueFrom != nil {
					e.Value, e.ValueFrom = string(o.secret[e.ValueFrom.SecretKeyRef.Key]), nil
				}
			}
			return c, nil
		}
	}
	return nil, apierrors.NewNotFound(corev1.Resource("container"), name)
}

// Token returns the same service account token for every pod.
func (o objects) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	return node.PodToken{Token: canary + "-token", RefreshAt: time.Now().Add(time.Hour)}, nil
}

// home is a running provider.
type home struct {
	*provider
	t    *testing.T
	stop func()

	mu       sync.Mutex
	reported map[types.UID]*corev1.Pod // guarded by mu: the pods as last reported to the node
}

func openHome(t *testing.T, c Config, o objects) *home {
	t.Helper()
	p := newProvider(t, c, o)
	h := &home{provider: p, t: t, reported: map[types.UID]*corev1.Pod{}}
	p.NotifyPods(t.Context(), func(pod *corev1.Pod) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.reported[pod.UID] = pod
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = p.RunInBackground(ctx) })
	h.stop = func() { cancel(); running.Wait() }
	t.Cleanup(h.stop)
	return h
}

// shellPod returns a pod whose container main runs a script.
func shellPod(name, driver, script string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uuid.NewUUID(), Annotations: map[string]string{AnnotationDriver: driver}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []corev1.Container{{Name: "main", Image: "none", Command: []string{"/bin/sh", "-c", script}}},
		},
	}
}

const forever = "trap 'exit 0' TERM; while :; do sleep 0.1; done"

// until waits until the pod has the given state.
func (h *home) until(pod *corev1.Pod, what string, ok func(*corev1.Pod) bool) *corev1.Pod {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	for {
		got, err := h.GetPod(ctx, pod.Namespace, pod.Name)
		if err == nil && got.UID == pod.UID && ok(got) {
			return got
		}
		if ctx.Err() != nil {
			h.t.Fatalf("waited a minute for pod %s to be %s: %+v, %v", pod.Name, what, got, err)
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

// untilReported waits until the node was told that the pod has the given state.
func (h *home) untilReported(pod *corev1.Pod, what string, ok func(*corev1.Pod) bool) *corev1.Pod {
	h.t.Helper()
	var got *corev1.Pod
	if !await(h.t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		got = h.reported[pod.UID]
		return got != nil && ok(got)
	}) {
		h.t.Fatalf("waited a minute for pod %s to be reported %s: %+v", pod.Name, what, got.Status)
	}
	return got
}

func phase(p corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Status.Phase == p }
}

func (h *home) create(pod *corev1.Pod) {
	h.t.Helper()
	if err := h.CreatePod(h.t.Context(), pod); err != nil {
		h.t.Fatal(err)
	}
}

// remove deletes pods and waits until they are gone.
func (h *home) remove(pods ...*corev1.Pod) {
	h.t.Helper()
	for _, pod := range pods {
		if err := h.DeletePod(h.t.Context(), pod); err != nil {
			h.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	for {
		left, err := h.GetPods(ctx)
		if err == nil && len(left) == 0 {
			return
		}
		if ctx.Err() != nil {
			h.t.Fatalf("%d pods are left after a minute: %v", len(left), err)
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

func (h *home) log(pod *corev1.Pod) string {
	h.t.Helper()
	r, err := h.GetContainerLogs(h.t.Context(), pod.Namespace, pod.Name, "main", api.ContainerLogOpts{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// exec runs a script in the container main.
func (h *home) exec(pod *corev1.Pod, script string) (code int, out string) {
	h.t.Helper()
	var stdout buffer
	err := h.RunInContainer(h.t.Context(), pod.Namespace, pod.Name, "main", []string{"/bin/sh", "-c", script}, session{out: &stdout})
	var exit utilexec.CodeExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	return exit.Code, stdout.String()
}

// session holds the streams of an exec without a terminal.
type session struct {
	in  io.Reader
	out *buffer
}

func (s session) TTY() bool                   { return false }
func (s session) Stdin() io.Reader            { return s.in }
func (s session) Stdout() io.WriteCloser      { return s.out }
func (s session) Stderr() io.WriteCloser      { return s.out }
func (s session) Resize() <-chan api.TermSize { return nil }

// buffer is a bytes.Buffer with a Close method.
type buffer struct{ bytes.Buffer }

func (*buffer) Close() error { return nil }
