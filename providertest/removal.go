// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// namespacePrefix begins the namespaces of all checks.
const namespacePrefix = "contract-"

// again is the time after which an existing pod is deleted once more.
const again = 2 * time.Second

// leftover is a pod without a confirmed end.
type leftover struct {
	pod     *corev1.Pod
	refused string // the error of the last DeletePod, "" after a success
	why     string // why the removal is not certain
}

// removePods deletes pods at once and waits until the provider confirms that they are gone, or ctx ends. It returns
// the remaining pods.
func removePods(ctx context.Context, p node.PodLifecycleHandler, pods []*corev1.Pod, every time.Duration) (left []leftover) {
	for _, pod := range pods {
		left = append(left, leftover{pod: pod})
	}
	var next time.Time
	for {
		ask := !time.Now().Before(next)
		if ask {
			next = time.Now().Add(again)
		}
		var still []leftover
		for _, l := range left {
			if ask {
				l.deletePod(ctx, p)
			}
			if !l.isGone(ctx, p) {
				still = append(still, l)
			}
		}
		left = still
		if len(left) == 0 || ctx.Err() != nil {
			return left
		}
		pauseFor(ctx, every)
	}
}

// deletePod deletes the pod.
func (l *leftover) deletePod(ctx context.Context, p node.PodLifecycleHandler) {
	pod := l.pod.DeepCopy()
	now, grace := metav1.Now(), int64(0)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
	err := p.DeletePod(ctx, pod)
	switch {
	case err == nil || errdefs.IsNotFound(err):
		l.refused = ""
	case ctx.Err() == nil: // otherwise the error only reports the timeout
		l.refused = fmt.Sprintf("delete it: %v", err)
	}
}

// isGone reports whether the provider reports the pod as gone.
func (l *leftover) isGone(ctx context.Context, p node.PodLifecycleHandler) bool {
	got, err := p.GetPod(ctx, l.pod.Namespace, l.pod.Name)
	switch {
	case errdefs.IsNotFound(err):
		return true
	case l.refused != "":
		l.why = l.refused
	case err != nil:
		l.why = fmt.Sprintf("look for it: %v", err)
	case got == nil || got.UID != l.pod.UID || isTerminal(got):
		return true
	default:
		l.why = "it is still there: " + describePod(got)
	}
	return false
}

// Leftovers returns the backend's pods of checks, as namespace/name, also ended pods: they are from an earlier
// run. An error says why the backend cannot be asked.
func Leftovers(ctx context.Context, h Harness) (names []string, err error) {
	return h.withProvider(ctx, "leftovers", func(c *C, p node.PodLifecycleHandler) (names []string, err error) {
		pods, err := ofChecks(c.ctx, p)
		for _, pod := range pods {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
		return names, err
	})
}

// RemoveLeftovers deletes all the backend's pods of checks, and waits for Harness.Patience until they are gone.
// It returns the pods that may still exist, and the reasons.
func RemoveLeftovers(ctx context.Context, h Harness) (left []string, err error) {
	return h.withProvider(ctx, "removal", func(c *C, p node.PodLifecycleHandler) ([]string, error) {
		pods, err := ofChecks(c.ctx, p)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(c.ctx, c.h.Patience)
		defer cancel()
		for _, l := range removePods(ctx, p, pods, c.h.Every) {
			c.recordLeft(l.pod, l.why)
		}
		return c.left, nil
	})
}

// ofChecks returns the pods in the namespaces of checks.
func ofChecks(ctx context.Context, p node.PodLifecycleHandler) ([]*corev1.Pod, error) {
	all, err := p.GetPods(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the pods at the backend: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(pod *corev1.Pod) bool { return !strings.HasPrefix(pod.Namespace, namespacePrefix) }), nil
}

// withProvider opens the provider for work outside of checks.
func (h Harness) withProvider(ctx context.Context, name string, do func(*C, node.PodLifecycleHandler) ([]string, error)) ([]string, error) {
	type answer struct {
		names []string
		err   error
	}
	came := make(chan answer, 1)
	k := Check{Name: name, Run: func(c *C) {
		s, err := c.tryOpen()
		if err != nil {
			came <- answer{nil, fmt.Errorf("open the provider: %w", err)}
			return
		}
		names, err := do(c, s.provider)
		came <- answer{names, err}
	}}
	r := k.run(ctx, h.withDefaults(), nil, namespacePrefix+name)
	select {
	case a := <-came:
		return a.names, a.err
	default:
		return nil, errors.New(r.Detail)
	}
}
