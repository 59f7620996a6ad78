// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

const noSuchSize = "the region has no machine with 900 GiB"

// rejecting returns a backend that rejects every pod.
func rejecting() *memory.Backend {
	b := memory.New()
	b.Inject(memory.Fault{Method: memory.Create, Err: errdefs.InvalidInput(noSuchSize)})
	return b
}

func ownedPod(name string, uid types.UID, policy corev1.RestartPolicy, apiVersion, kind string) *corev1.Pod {
	p := bound(name, uid)
	p.Spec.RestartPolicy = policy
	if yes := true; kind != "" {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner", UID: "o", Controller: &yes}}
	}
	return p
}

func TestInvalidInputFailsThePod(t *testing.T) {
	for _, test := range []struct {
		name             string
		policy           corev1.RestartPolicy
		apiVersion, kind string
		err              error
		want             corev1.PodPhase
	}{
		{"Never", corev1.RestartPolicyNever, "", "", errdefs.InvalidInput(noSuchSize), corev1.PodFailed},
		{"Never of a Job", corev1.RestartPolicyNever, "batch/v1", "Job", errdefs.InvalidInput(noSuchSize), corev1.PodFailed},
		{"OnFailure of a Job", corev1.RestartPolicyOnFailure, "batch/v1", "Job", errdefs.InvalidInput(noSuchSize), corev1.PodFailed},
		{"wrapped", corev1.RestartPolicyNever, "", "", fmt.Errorf("create machine: %w", errdefs.AsInvalidInput(errors.New(noSuchSize))), corev1.PodFailed},
		{"OnFailure without an owner", corev1.RestartPolicyOnFailure, "", "", errdefs.InvalidInput(noSuchSize), corev1.PodPending},
		{"OnFailure of somebody else's Job", corev1.RestartPolicyOnFailure, "acme.example/v1", "Job", errdefs.InvalidInput(noSuchSize), corev1.PodPending},
		{"Always of a ReplicaSet", corev1.RestartPolicyAlways, "apps/v1", "ReplicaSet", errdefs.InvalidInput(noSuchSize), corev1.PodPending},
		{"Never, an error without a kind", corev1.RestartPolicyNever, "", "", errors.New(noSuchSize), corev1.PodPending},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, log := memory.New(), &eventLog{}
			b.Inject(memory.Fault{Method: memory.Create, Err: test.err})
			inWorld(t, b, func(w *world) {
				w.start()
				w.api.Create(ownedPod("p", "a", test.policy, test.apiVersion, test.kind))
				w.pass(time.Second)
				w.wantPhase("p", test.want)
				if test.want != corev1.PodFailed {
					return
				}
				w.pass(time.Hour)
				s := w.api.Pod("d", "p").Status
				if s.Reason != "ProviderPodRejected" || s.Message != test.err.Error() || len(s.ContainerStatuses) != 0 {
					w.Errorf("status is %+v, want the provider's words and no container that ended", s)
				}
				if told := len(log.of(eventRejected)); told != 1 {
					w.Errorf("%d events, want 1", told)
				}
				w.api.Delete("d", "p", -1)
				w.pass(time.Second)
				w.wantPhase("p", "")
				wantCalls(t, b, "create d/p") // nothing was created, so nothing is stopped
			}, log.use)
		})
	}
}

// TestInvalidInputLetsOthersWait: a ReplicaSet would create a new pod for each failed pod, forever.
func TestInvalidInputLetsOthersWait(t *testing.T) {
	b, log := rejecting(), &eventLog{}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(ownedPod("p", "a", corev1.RestartPolicyAlways, "apps/v1", "ReplicaSet"))
		tries := func(want int, when string) {
			if n := b.Count("create d/p"); n != want {
				w.Errorf("%s: %d tries, want %d", when, n, want)
			}
		}
		w.pass(9 * time.Minute)
		tries(1, "9 minutes")
		s := w.api.Pod("d", "p").Status
		if len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State.Waiting == nil || s.ContainerStatuses[0].State.Waiting.Reason != "CreateContainerConfigError" {
			w.Errorf("status is %+v, want a container that waits", s)
		}
		w.label("p", "one")
		w.pass(100 * time.Millisecond)
		tries(2, "after a change of the pod")
		w.pass(10*time.Minute + time.Second)
		tries(3, "10 minutes later")
		if told := len(log.of(eventRejected)); told != 2 {
			w.Errorf("%d events in 20 minutes, want 2", told)
		}
		b.Heal()
		b.Inject(memory.Fault{Method: memory.Create, Times: 1, Err: memory.ErrUnwell})
		w.label("p", "two")
		w.pass(100 * time.Millisecond)
		tries(4, "when the backend fails in another way")
		if s := w.api.Pod("d", "p").Status; s.ContainerStatuses[0].State.Waiting.Reason != "ContainerCreating" {
			w.Errorf("status is %+v, want no container that waits for its configuration", s)
		}
		w.pass(10 * time.Second)
		w.wantPhase("p", corev1.PodRunning)
		if s := w.api.Pod("d", "p").Status; s.Reason != "" || s.ContainerStatuses[0].State.Running == nil {
			w.Errorf("status is %+v, want no word of the error", s)
		}
	}, log.use)
}

func TestRejectedPodIsDeletedWithoutAStop(t *testing.T) {
	b := rejecting()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(ownedPod("p", "a", corev1.RestartPolicyAlways, "apps/v1", "ReplicaSet"))
		w.pass(time.Minute)
		w.api.Delete("d", "p", 30)
		w.pass(time.Second)
		w.wantPhase("p", "")
		wantCalls(t, b, "create d/p")
	})
}

// TestRejectionAfterAnErrorMakesSure: the first CreatePod may have created something.
func TestRejectionAfterAnErrorMakesSure(t *testing.T) {
	b := memory.New()
	b.Inject(memory.Fault{Method: memory.Create, Times: 1, Err: memory.ErrUnwell})
	b.Inject(memory.Fault{Method: memory.Create, Err: errdefs.InvalidInput(noSuchSize)})
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(ownedPod("p", "a", corev1.RestartPolicyNever, "", ""))
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodFailed)
		wantCalls(t, b, "create d/p", "create d/p", "delete d/p")
	})
}

// TestUsersDecideOnRetriesOfRejectedPods: the delay of 10 minutes is only the default.
func TestUsersDecideOnRetriesOfRejectedPods(t *testing.T) {
	second := time.Second
	for name, configure := range map[string]func(*PodControllerConfig){
		"ShouldRetryFunc": func(cfg *PodControllerConfig) {
			cfg.SyncPodsFromKubernetesShouldRetryFunc = func(context.Context, string, int, time.Time, error) (*time.Duration, error) {
				return &second, nil
			}
		},
		"RateLimiter": func(cfg *PodControllerConfig) {
			cfg.SyncPodsFromKubernetesRateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[any](second, second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := rejecting()
			inWorld(t, b, func(w *world) {
				w.start()
				w.api.Create(ownedPod("p", "a", corev1.RestartPolicyAlways, "", ""))
				w.pass(10*time.Second + second/2)
				if n := b.Count("create d/p"); n != 11 {
					w.Errorf("%d tries in 10 seconds, want 11", n)
				}
			}, configure)
		})
	}
}

// TestStopIsNeverRejected: an invalid-input error of a stop does not delay the retry for minutes.
func TestStopIsNeverRejected(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		var stops atomic.Int32
		b.Script(func(_ context.Context, method, _ string) error {
			if method == memory.Delete && stops.Add(1) < 4 {
				return errdefs.InvalidInput("no")
			}
			return nil
		})
		w.api.Delete("d", "p", 1)
		w.pass(10 * time.Second)
		w.wantPhase("p", "")
	})
}
