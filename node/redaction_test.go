// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// withSecret returns a pod with the values in its environment, from a Secret that it creates.
func (w *world) withSecret(name string, uid types.UID, values ...string) *corev1.Pod {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "s"}, Data: map[string][]byte{}}
	for i, value := range values {
		secret.Data[fmt.Sprint("k", i)] = []byte(value)
	}
	if _, err := w.objects.CoreV1().Secrets("d").Create(w.Context(), secret, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	pod := bound(name, uid)
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
	return pod
}

// TestSecurityD2WhatAProviderSaysIsRedactedAndCut makes a provider return the value of a Secret, a token and a megabyte of text.
func TestSecurityD2WhatAProviderSaysIsRedactedAndCut(t *testing.T) {
	const canary = "c4n4ry value"
	said := fmt.Sprintf("cannot start with %s or %s at https://me:c4n4ry@host; %s", canary, base64.StdEncoding.EncodeToString([]byte(canary)), strings.Repeat("x", 128<<10))
	for name, say := range map[string]func(){
		"an error": nil,
		"a panic":  func() { panic(said) },
	} {
		b := memory.New()
		b.Fault = func(_ context.Context, method, _ string) error {
			if method != "create" {
				return nil
			}
			if say != nil {
				say()
			}
			return errors.New(said)
		}
		inWorld(t, b, func(w *world) {
			p := w.withSecret("p", "a", canary)
			w.start()
			w.api.Create(p)
			w.pass(time.Minute)
			events := w.events()
			shown := append([]string{w.api.Pod("d", "p").Status.Message}, events...)
			for _, c := range w.api.Pod("d", "p").Status.Conditions {
				shown = append(shown, c.Message)
			}
			if len(events) == 0 || !strings.Contains(shown[0]+shown[1], "[redacted]") {
				t.Errorf("%s: shown is %.300q, want what the provider said", name, shown)
			}
			for _, text := range append(shown, w.ctl.RedactError("d", "p", errors.New(said)).Error()) {
				if strings.Contains(text, "c4n4ry") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(canary))) {
					t.Errorf("%s: a secret is in %.300q", name, text)
				}
				if text = strings.TrimPrefix(text, "Warning "+eventCreateFailed+" "); len(text) > redact.Limit {
					t.Errorf("%s: a text has %d bytes, want %d at most", name, len(text), redact.Limit)
				}
			}
			w.api.Delete("d", "p", 1)
			w.pass(time.Minute)
			if n := len(w.ctl.secrets.All()); n != 0 {
				t.Errorf("%s: there are secrets of %d pods that are gone", name, n)
			}
		})
	}
}

// TestSettingsInASecretLeaveMessagesReadable: a Secret may contain values that are not secret, and removing "http" and "prod" would make
// messages unreadable.
func TestSettingsInASecretLeaveMessagesReadable(t *testing.T) {
	const readable = "dial http://prod.example:8080 (verbose=true): connection refused"
	b := memory.New()
	b.Fault = func(_ context.Context, method, _ string) error {
		if method == "create" {
			return errors.New(readable + " for s3cret-8")
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		p := w.withSecret("p", "a", "s3cret-8", "http", "prod", "true", "8080")
		w.start()
		w.api.Create(p)
		w.pass(time.Minute)
		message := w.api.Pod("d", "p").Status.Message
		if !strings.Contains(message, readable+" for [redacted]") {
			t.Errorf("message is %q, want %q and the secret redacted", message, readable)
		}
		if events := strings.Join(w.events(), "\n"); !strings.Contains(events, readable+" for [redacted]") {
			t.Errorf("events are %q, want %q and the secret redacted", events, readable)
		}
	})
}

// TestSecurityD2WhatAnOlderPodHadIsStillRedacted: the backend still has the older pod, and its DeletePod returns the secret of that pod.
func TestSecurityD2WhatAnOlderPodHadIsStillRedacted(t *testing.T) {
	const canary = "c4n4ry value"
	b := memory.New()
	var heals atomic.Bool
	b.Fault = func(_ context.Context, method, _ string) error {
		if method == "delete" && !heals.Load() {
			return errors.New("cannot stop what has " + canary)
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		old := w.withSecret("p", "old", canary)
		w.start()
		w.api.Create(old)
		w.pass(time.Second)
		w.api.Delete("d", "p", 0)
		w.api.Create(bound("p", "new"))
		w.pass(10 * time.Second)
		shown := append(w.events(), w.api.Pod("d", "p").Status.Message)
		if all := strings.Join(shown, "\n"); !strings.Contains(all, "[redacted]") || strings.Contains(all, "c4n4ry") {
			t.Errorf("shown is %.500q, want what the provider said, without the secret", all)
		}
		heals.Store(true)
		w.pass(2 * time.Minute)
		if n := len(w.ctl.secrets.All()); n != 1 {
			t.Errorf("there are secrets of %d pods, want those of the one that is left", n)
		}
	})
}
