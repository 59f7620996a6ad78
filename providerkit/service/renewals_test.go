// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// withToken gives a pod a volume with a Secret and a token.
func withToken(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{{Name: "keys", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}},
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
	}}}}}
	return pod
}

// TestRenewalsAfterARestartAreApart: after a restart, the renewals of the pods are spread over time, and come
// before the tokens expire.
func TestRenewalsAfterARestartAreApart(t *testing.T) {
	now, seconds := time.Now(), map[time.Duration]bool{}
	for i := range 100 {
		pod := withToken(&corev1.Pod{})
		pod.UID = types.UID(fmt.Sprint("uid-", i))
		after := firstRenewal(pod, now).Sub(now)
		if after < time.Minute || after > 10*time.Minute {
			t.Errorf("tokens are renewed after %s, want 1 to 10 minutes of the hour that they live", after)
		}
		seconds[after.Truncate(time.Second)] = true
	}
	if len(seconds) < 50 {
		t.Errorf("100 pods are renewed in %d different seconds", len(seconds))
	}
}

// TestTokensOfAPodThatHasEndedAreLeft: the tokens of an ended pod are not replaced, because the cluster gives
// such a pod no new tokens.
func TestTokensOfAPodThatHasEndedAreLeft(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		driver := &renewing{cloud: h.cloud, begun: time.Now()}
		p, _ := h.start(driver)
		p.UsePodTokens(tokens{})
		pod := withToken(h.pod("web"))
		pod.Spec.Volumes[0].Projected.Sources = pod.Spec.Volumes[0].Projected.Sources[1:]
		h.create(p, pod)
		h.cloud.mu.Lock()
		h.cloud.vms[0].over = true
		h.cloud.mu.Unlock()
		time.Sleep(3 * time.Hour)
		if len(driver.at) > 0 {
			t.Errorf("replaced after %v", driver.at)
		}
	})
}

// lives records the requested lifetimes of tokens.
type lives struct{ asked []int64 }

func (l *lives) Token(_ context.Context, _ *corev1.Pod, source *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	if source.ExpirationSeconds != nil {
		l.asked = append(l.asked, *source.ExpirationSeconds)
	}
	return node.PodToken{Token: "token"}, nil
}

// TestTokensThatNobodyReplacesLastAsLongAsThePod: a driver that cannot replace tokens gets tokens that live as
// long as the pod. A driver that can replace them gets tokens with the lifetime in the pod.
func TestTokensThatNobodyReplacesLastAsLongAsThePod(t *testing.T) {
	for _, renews := range []bool{false, true} {
		bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
			driver := Driver[vm](h.cloud)
			if renews {
				driver = &renewing{cloud: h.cloud, begun: time.Now()}
			}
			p, _ := h.start(driver)
			tokens := &lives{}
			p.UsePodTokens(tokens)
			pod := withToken(h.pod("job"))
			pod.Spec.ActiveDeadlineSeconds = new(int64(86400))
			pod.Spec.Volumes[0].Projected.Sources = pod.Spec.Volumes[0].Projected.Sources[1:]
			pod.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken.ExpirationSeconds = new(int64(3607))
			if _, err := p.Inputs(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int64{false: 87000, true: 3607}[renews]; len(tokens.asked) != 1 || tokens.asked[0] != want {
				t.Errorf("renews: %t: asked for tokens that live %v s, want %d", renews, tokens.asked, want)
			}
			if s := pod.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken; *s.ExpirationSeconds != 3607 {
				t.Error("the pod is changed")
			}
		})
	}
}
