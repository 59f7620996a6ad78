// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// unreadable is a source of credentials that cannot be read.
type unreadable struct{}

func (unreadable) PullCredentials(context.Context, *corev1.Pod) ([]node.RegistryCredential, error) {
	return nil, errors.New("the Secret cannot be read")
}

// TestPullSecretsAreReadForAServiceThatTakesThem: pods of a service without logins do not wait for their pull
// Secrets.
func TestPullSecretsAreReadForAServiceThatTakesThem(t *testing.T) {
	for _, none := range []bool{false, true} {
		bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
			p, _ := h.start(nil, func(c *Config) { c.NoLogins = none })
			p.UsePullCredentials(unreadable{})
			pod := h.pod("web")
			pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
			if err := p.CreatePod(t.Context(), pod.DeepCopy()); (err == nil) != none {
				t.Errorf("no logins: %t: got %v", none, err)
			}
		})
	}
}
