// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"encoding/base64"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// gone are objects without Secrets.
type gone struct{ objects }

func (gone) Secret(_ context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("secret"), name)
}

// later are objects with another token.
type later struct{ objects }

func (l later) Token(ctx context.Context, pod *corev1.Pod, s *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	t, err := l.objects.Token(ctx, pod, s)
	t.Token = "later"
	return t, err
}

// keysPod is a pod with a Secret and a token in one volume.
func keysPod() *corev1.Pod {
	pod := shellPod("keys", DriverExec, "exit 0")
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "keys", MountPath: "/keys"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "keys", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		},
	}}}}
	return pod
}

// TestRenewalReplacesTokensOnly: whatever becomes of a Secret, the items that the job refers to stay, and only the token is another.
func TestRenewalReplacesTokensOnly(t *testing.T) {
	made := objects{secret: map[string][]byte{"a": []byte("1"), "b": []byte("2")}}
	for name, now := range map[string]node.PodObjects{
		"key added":   objects{secret: map[string][]byte{"a": []byte("1"), "aa": []byte("x"), "b": []byte("3")}},
		"key removed": objects{secret: map[string][]byte{"b": []byte("2")}},
		"deleted":     gone{},
	} {
		t.Run(name, func(t *testing.T) {
			d, p := openDouble(t, made)
			pod := keysPod()
			if err := p.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			want := d.items()
			if len(want) != 3 {
				t.Fatalf("the Variable has the items %v, want three", want)
			}
			token := itemName("secrets/vk/keys/token")
			want[token] = base64.StdEncoding.EncodeToString([]byte("later"))
			p.UsePodObjects(now)
			p.UsePodTokens(later{made})
			if err := p.renew(t.Context(), p.store.pods[pod.UID]); err != nil {
				t.Fatal(err)
			}
			if got := d.items(); !maps.Equal(got, want) {
				t.Errorf("after the renewal the items are %v, want %v", got, want)
			}
		})
	}
}

// TestCreateAgainLeavesVariables: the Variable of a job that is there has what the job refers to. Without a job, it is written anew.
func TestCreateAgainLeavesVariables(t *testing.T) {
	for name, there := range map[string]bool{"with the job": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			d, p := openDouble(t, objects{secret: map[string][]byte{"a": []byte("1")}})
			pod := keysPod()
			if err := p.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			before := d.items()
			d.set(func() {
				if !there {
					clear(d.jobs)
				}
			})
			p.store.mu.Lock()
			p.store.remove(p.store.pods[pod.UID])
			p.store.mu.Unlock()
			p.UsePodObjects(objects{secret: map[string][]byte{"a": []byte("2"), "aa": []byte("x")}})
			if err := p.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if same := maps.Equal(before, d.items()); same != there {
				t.Errorf("the items are %v, before %v; the job was there: %t", d.items(), before, there)
			}
		})
	}
}

// TestConflictHasNoValues: Nomad answers a conflict with the Variable, which must be in no error.
func TestConflictHasNoValues(t *testing.T) {
	d, p := openDouble(t, objects{secret: map[string][]byte{"a": []byte(canary)}})
	pod := keysPod()
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	p.store.mu.Lock()
	p.store.remove(p.store.pods[pod.UID])
	p.store.mu.Unlock()
	d.set(func() { d.fail["GET /v1/job/"] = 500 })
	err := p.CreatePod(t.Context(), pod)
	if err == nil || strings.Contains(err.Error(), base64.StdEncoding.EncodeToString([]byte(canary))) {
		t.Errorf("got %v, want an error without the value", err)
	}
}
