// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// readTimeout is the timeout of provider calls that only read.
const readTimeout = time.Minute

// backend makes all provider calls about pods. During a slow call other pods use the worker. A panic becomes an error, and errors contain
// no secrets of the pods in the call.
type backend struct {
	provider  PodLifecycleHandler
	notifies  bool
	authority PodAuthority        // nil: it is unknown whether the provider's answers are complete
	starts    bool                // the provider is a PodObjectsUser: it starts containers one by one
	changes   providercall.Caller // for calls that change the backend
	reads     providercall.Caller // for calls that only read
	secrets   *podsecrets.Manager
	core      *podCore
	nodeName  string
}

func newBackend(cfg *PodControllerConfig, core *podCore) *backend {
	b := &backend{provider: cfg.Provider, secrets: core.secrets, core: core, nodeName: cfg.NodeName}
	_, b.notifies = cfg.Provider.(PodNotifier)
	_, b.starts = cfg.Provider.(PodObjectsUser)
	b.authority, _ = cfg.Provider.(PodAuthority)
	patience := &providercall.Patience{}
	b.changes = providercall.Caller{Deadline: cfg.ProviderCallTimeout, Patience: patience, Slow: keyqueue.Yield}
	b.reads = providercall.Caller{Deadline: min(cfg.ProviderCallTimeout, readTimeout), Patience: patience, Slow: keyqueue.Yield}
	return b
}

// callToChange makes a call that changes the backend.
func (b *backend) callToChange(ctx context.Context, key, method string, call func(context.Context) error) error {
	return b.changes.Do(b.withRedaction(ctx, key), method, call)
}

// deletePod requests the stop of a pod. It removes a UID that the node made up.
func (b *backend) deletePod(ctx context.Context, pod *corev1.Pod) error {
	b.core.given.supposeGiven(keyOf(pod), pod.UID) // from now on the next pod of the name has another UID
	if isUnknown(pod) {
		pod.UID = ""
	}
	return b.provider.DeletePod(ctx, pod)
}

// getPod requests a pod by its name.
func (b *backend) getPod(ctx context.Context, key string) (pod *corev1.Pod, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	err = b.reads.Do(b.withRedaction(ctx, key), "GetPod", func(ctx context.Context) (err error) {
		pod, err = b.provider.GetPod(ctx, namespace, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b.core.given.stampUID(pod, b.core.pod(ctx, key)), nil
}

// getPodStatus requests the status of a pod.
func (b *backend) getPodStatus(ctx context.Context, api *corev1.Pod) (status *corev1.PodStatus, err error) {
	err = b.reads.Do(b.withRedaction(ctx, keyOf(api)), "GetPodStatus", func(ctx context.Context) (err error) {
		status, err = b.provider.GetPodStatus(ctx, api.Namespace, api.Name)
		return err
	})
	return status, err
}

// listPods returns the backend's pods of this node.
func (b *backend) listPods(ctx context.Context) (pods []*corev1.Pod, err error) {
	err = b.reads.Do(redact.With(ctx, b.secrets.All), "GetPods", func(ctx context.Context) (err error) {
		pods, err = b.provider.GetPods(ctx)
		return err
	})
	pods = slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p == nil || b.isForeign(p) }) // the slice may belong to the provider
	for i, pod := range pods {
		if pod.UID == "" {
			pods[i] = b.core.given.stampUID(pod, b.core.pod(ctx, keyOf(pod)))
		}
	}
	return pods, err
}

// isForeign reports whether the pod belongs to another node. Some backends list pods of other nodes, which must
// not be touched.
func (b *backend) isForeign(pod *corev1.Pod) bool {
	return b.nodeName != "" && pod.Spec.NodeName != "" && pod.Spec.NodeName != b.nodeName
}

// isComplete asks a PodAuthority. A panic counts as false.
func (b *backend) isComplete(ctx context.Context) (all bool) {
	err := (&providercall.Caller{}).Do(ctx, "AnswersForAllPods", func(context.Context) error {
		all = b.authority.AnswersForAllPods()
		return nil
	})
	return err == nil && all
}

// takeReports makes a PodNotifier call report for each change of its pods.
func (b *backend) takeReports(ctx context.Context, report func(context.Context, *corev1.Pod)) error {
	n, ok := b.provider.(PodNotifier)
	if !ok {
		return nil
	}
	return (&providercall.Caller{}).Do(ctx, "NotifyPods", func(ctx context.Context) error {
		n.NotifyPods(ctx, func(pod *corev1.Pod) { report(ctx, pod) })
		return nil
	})
}

// runInBackground runs the provider's own work while the node runs. It ends the controller if that work ends early.
func (b *backend) runInBackground(ctx context.Context, end context.CancelCauseFunc) {
	runner, ok := b.provider.(BackgroundRunner)
	if !ok {
		return
	}
	err := (&providercall.Caller{}).Do(ctx, "RunInBackground", runner.RunInBackground)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		err = errors.New("it returned while the node runs")
	}
	end(fmt.Errorf("the provider's work in the background: %w", err))
}

// withRedaction returns a context for calls about the pods of a name. The secrets of these pods are removed from
// the provider's errors.
func (b *backend) withRedaction(ctx context.Context, key string) context.Context {
	return redact.With(ctx, func() []*redact.Values {
		namespace, name, _ := cache.SplitMetaNamespaceKey(key)
		return b.secrets.Named(namespace, name)
	})
}
