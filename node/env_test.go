// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

func TestPodWaitsForItsConfigMap(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}, Key: "k"}}}}
		w.api.Create(p)
		w.pass(time.Second)
		s := w.api.Pod("d", "p").Status
		if s.Phase != corev1.PodPending || len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State.Waiting == nil || s.ContainerStatuses[0].State.Waiting.Reason != "CreateContainerConfigError" {
			t.Errorf("status is %+v, want a container that waits with CreateContainerConfigError", s)
		}
		if e := strings.Join(w.events(), "\n"); !strings.Contains(e, "MandatoryConfigMapNotFound") {
			t.Errorf("events are %q, want MandatoryConfigMapNotFound", e)
		}
		wantCalls(t, b)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "cm"}, Data: map[string]string{"k": "v"}}
		if _, err := w.objects.CoreV1().ConfigMaps("d").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodRunning)
		if env := b.Has("d/p").Spec.Containers[0].Env; len(env) == 0 || env[0].Value != "v" {
			t.Errorf("environment is %v, want X=v", env)
		}
	})
}

func TestSecretsStayOutOfRequests(t *testing.T) {
	const canary = "c4n4ry"
	b := memory.New()
	b.Fault = memory.FailFirst("create", 2)
	inWorld(t, b, func(w *world) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "s"}, Data: map[string][]byte{"k": []byte(canary)}}
		if _, err := w.objects.CoreV1().Secrets("d").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.start()
		p := bound("p", "a")
		p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
		w.api.Create(p)
		w.pass(time.Minute)
		if env := fmt.Sprint(b.Has("d/p").Spec.Containers[0].Env); !strings.Contains(env, canary) {
			t.Fatalf("the provider was not given the secret: %s", env)
		}
		w.api.Delete("d", "p", 1)
		w.pass(time.Minute)
		for _, write := range w.api.Writes("") {
			if strings.Contains(write.Body, canary) {
				t.Errorf("the secret is in a request: %s", write.Body)
			}
		}
		if e := fmt.Sprint(w.events()); strings.Contains(e, canary) {
			t.Errorf("the secret is in an event: %s", e)
		}
	})
}

// silentObjects never answers, like a broken connection.
type silentObjects struct{}

func (silentObjects) ConfigMap(ctx context.Context, _, _ string) (*corev1.ConfigMap, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silentObjects) Secret(ctx context.Context, _, _ string) (*corev1.Secret, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestReadThatHangsIsGivenUp: pods whose ConfigMap cannot be read free their workers, and their status shows the reason.
func TestReadThatHangsIsGivenUp(t *testing.T) {
	inWorld(t, memory.New(), func(w *world) {
		w.start()
		w.ctl.inputs.objects.env.Objects = silentObjects{}
		for i := range 10 {
			p := bound(fmt.Sprint("waiting", i), "")
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}
			w.api.Create(p)
		}
		w.pass(time.Second)
		w.api.Create(bound("eleventh", ""))
		w.pass(25 * time.Second)
		w.wantPhase("eleventh", corev1.PodRunning)
		w.pass(time.Minute)
		if got := w.api.Pod("d", "waiting0").Status.Message; !strings.Contains(got, context.DeadlineExceeded.Error()) {
			t.Errorf("message of a waiting pod is %q, want the deadline in it", got)
		}
	})
}

// heldObjects answers when let is closed.
type heldObjects struct{ let chan struct{} }

func (h heldObjects) ConfigMap(ctx context.Context, _, _ string) (*corev1.ConfigMap, error) {
	select {
	case <-h.let:
		return &corev1.ConfigMap{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h heldObjects) Secret(context.Context, string, string) (*corev1.Secret, error) {
	return nil, errors.New("no Secret is named")
}

// TestPodThatWentWhileItsConfigMapWasReadIsNotCreated: the user deletes the pod during the slow read.
func TestPodThatWentWhileItsConfigMapWasReadIsNotCreated(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile func(w *world)
		calls     []string
	}{
		"nothing happens": {func(*world) {}, []string{"create d/p"}},
		"it is to stop":   {func(w *world) { w.api.Delete("d", "p", 30) }, nil},
		"it is removed":   {func(w *world) { w.api.Delete("d", "p", 0) }, nil},
		"another has its name": {func(w *world) {
			w.api.Delete("d", "p", 0)
			w.api.Create(bound("p", "b"))
		}, []string{"create d/p"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				w.start()
				objects := heldObjects{make(chan struct{})}
				w.ctl.inputs.objects.env.Objects = objects
				p := bound("p", "a")
				p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}
				w.api.Create(p)
				w.pass(time.Second)
				tt.meanwhile(w)
				w.pass(time.Second)
				close(objects.let)
				w.pass(time.Minute)
				wantCalls(t, b, tt.calls...)
			})
		})
	}
}
