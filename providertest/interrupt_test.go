// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// shared returns a harness whose checks all use one backend, as in one account. created is called after every
// CreatePod.
func shared(ctx context.Context, created func(*corev1.Pod), undeletable bool) (providertest.Harness, *inprocess.Provider) {
	cloud := inprocess.New(ctx)
	h := inProcess(nil)
	h.Backend = func(_ context.Context, env providertest.Env) (*providertest.Backend, error) {
		return &providertest.Backend{Open: func(context.Context) (node.PodLifecycleHandler, error) {
			return watched{inprocess.Open(cloud, inprocess.Objects{ConfigMaps: env.ConfigMaps, Secrets: env.Secrets}), created, undeletable}, nil
		}}, nil
	}
	return h, inprocess.Open(cloud, inprocess.Objects{})
}

type watched struct {
	*inprocess.Provider
	created     func(*corev1.Pod)
	undeletable bool
}

func (w watched) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	err := w.Provider.CreatePod(ctx, pod)
	w.created(pod)
	return err
}

func (w watched) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if w.undeletable {
		return errors.New("403 Forbidden")
	}
	return w.Provider.DeletePod(ctx, pod)
}

// running returns the pods at the backend that have not ended.
func running(t *testing.T, p *inprocess.Provider) (names []string) {
	t.Helper()
	pods, err := p.GetPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodPending {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}
	return names
}

// TestInterrupted: an interrupted run leaves nothing behind that costs money, at any point of the run.
func TestInterrupted(t *testing.T) {
	for _, at := range []int32{1, 2, 7, 20, 33, 36, 60} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var made, after atomic.Int32 // creation/many makes its pods at once
			h, backend := shared(t.Context(), func(pod *corev1.Pod) {
				if n := made.Add(1); n == at {
					interrupt()
				} else if n > at && !strings.HasPrefix(pod.Name, "many-") {
					after.Add(1)
				}
			}, false)
			h.Only = regexp.MustCompile("^(creation|environment|files|exits|identity|logs|deletion)/")
			r, err := providertest.Verify(ctx, h)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Interrupted || r.Features != nil || after.Load() > 1 {
				t.Errorf("interrupted at pod %d: got Interrupted %t, features %v and %d more pods", at, r.Interrupted, r.Features, after.Load())
			}
			if last := r.Results[len(r.Results)-1]; last.Outcome != providertest.Skipped || last.Detail != "the run was interrupted" {
				t.Errorf("interrupted at pod %d: the last check is %+v", at, last)
			}
			for _, k := range r.Results {
				if k.Outcome == providertest.Failed || len(k.Left) > 0 {
					t.Errorf("interrupted at pod %d: check %s %s: %s; left: %v", at, k.Name, k.Outcome, k.Detail, k.Left)
				}
			}
			if left := running(t, backend); len(left) > 0 {
				t.Errorf("interrupted at pod %d: the backend still runs %v", at, left)
			}
		})
	}
}

// TestInterruptedAfterAFailure: a failure before the interruption is reported, and a failure because of the
// interruption is not.
func TestInterruptedAfterAFailure(t *testing.T) {
	for name, tt := range map[string]struct {
		before  bool
		outcome providertest.Outcome
		detail  string
	}{"before": {true, providertest.Failed, "really"}, "after": {false, providertest.Skipped, "the run was interrupted"}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			h, _ := shared(t.Context(), func(*corev1.Pod) {}, false)
			h.Only = regexp.MustCompile("^extra/")
			h.Extra = []providertest.Check{{Name: "extra/fails", Run: func(c *providertest.C) {
				if tt.before {
					c.Errorf("really")
				}
				interrupt()
				<-c.Context().Done()
				c.Fatalf("by the interruption")
			}}}
			r, err := providertest.Verify(ctx, h)
			if err != nil {
				t.Fatal(err)
			}
			if k := r.Results[0]; k.Outcome != tt.outcome || k.Detail != tt.detail {
				t.Errorf("a failure %s the interruption: got %s %q, want %s %q", name, k.Outcome, k.Detail, tt.outcome, tt.detail)
			}
		})
	}
}

// TestLeft: a pod that could not be removed is reported. The next run finds and removes it.
func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, backend := shared(t.Context(), func(*corev1.Pod) {}, true)
		h.Only = regexp.MustCompile("^creation/runs$")
		begin := time.Now()
		r, err := providertest.Verify(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		left := r.Results[0].Left
		if len(left) != 1 || !strings.HasPrefix(left[0], "contract-creation-runs/runs (UID ") || !strings.HasSuffix(left[0], "delete it: 403 Forbidden") {
			t.Errorf("the check says that it left %q, want its pod and why", left)
		}
		if took := time.Since(begin); took > 2*time.Minute {
			t.Errorf("it tried for %s, want the minute that is the harness's patience", took)
		}
		names, err := providertest.Leftovers(t.Context(), h)
		if err != nil || len(names) != 1 || names[0] != "contract-creation-runs/runs" {
			t.Errorf("Leftovers returns %v, %v", names, err)
		}
		if left, err := providertest.RemoveLeftovers(t.Context(), h); err != nil || len(left) != 1 {
			t.Errorf("RemoveLeftovers where nothing can be deleted returns %v, %v, want the pod", left, err)
		}

		other := &corev1.Pod{}
		other.Namespace, other.Name, other.UID = "default", "somebody-elses", "u1"
		other.Spec.Containers = []corev1.Container{{Name: "main", Args: []string{`{"stay":9000000000000000}`}}}
		if err := backend.CreatePod(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		may := h
		may.Backend = func(context.Context, providertest.Env) (*providertest.Backend, error) {
			return &providertest.Backend{Open: func(context.Context) (node.PodLifecycleHandler, error) { return backend, nil }}, nil
		}
		if left, err := providertest.RemoveLeftovers(t.Context(), may); err != nil || len(left) != 0 {
			t.Errorf("RemoveLeftovers returns %v, %v", left, err)
		}
		if left := running(t, backend); len(left) != 1 || left[0] != "default/somebody-elses" {
			t.Errorf("at the backend runs %v, want the pod of somebody else alone", left)
		}
	})
}

// TestLeftoversOfABackendThatDoesNotAnswer: a backend that does not answer is an error, and not an empty list.
func TestLeftoversOfABackendThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := inProcess(nil)
		h.Backend = func(ctx context.Context, _ providertest.Env) (*providertest.Backend, error) {
			cloud := inprocess.New(ctx)
			cloud.Fail(inprocess.ErrOutage)
			return &providertest.Backend{Open: func(context.Context) (node.PodLifecycleHandler, error) {
				return inprocess.Open(cloud, inprocess.Objects{}), nil
			}}, nil
		}
		if names, err := providertest.Leftovers(t.Context(), h); !errors.Is(err, inprocess.ErrOutage) {
			t.Errorf("Leftovers returns %v, %v, want the error", names, err)
		}
		h.Backend = func(context.Context, providertest.Env) (*providertest.Backend, error) {
			return nil, errors.New("no such region")
		}
		if _, err := providertest.Leftovers(t.Context(), h); err == nil || !strings.Contains(err.Error(), "no such region") {
			t.Errorf("without a backend Leftovers returns %v", err)
		}
	})
}
