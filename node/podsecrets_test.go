// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestSecurityD2WhatAProviderSaysIsRedactedAndCut has a provider say the value of a Secret, a token and a megabyte.
func TestSecurityD2WhatAProviderSaysIsRedactedAndCut(t *testing.T) {
	const canary = "c4n4ry value"
	said := fmt.Sprintf("cannot start with %s or %s at https://me:c4n4ry@host; %s", canary, base64.StdEncoding.EncodeToString([]byte(canary)), strings.Repeat("x", 1<<20))
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
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "s"}, Data: map[string][]byte{"k": []byte(canary)}}
			if _, err := w.objects.CoreV1().Secrets("d").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			w.start()
			p := bound("p", "a")
			p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
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
