// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Ping returns nil when the runtime is ready to run pods.
func (r *Runtime) Ping(ctx context.Context) error {
	if r.lock.taken.Load() {
		return fmt.Errorf("another process uses %s; it must end first", r.cfg.Root)
	}
	answer, err := r.cfg.Runtime.Status(ctx, false)
	if err != nil {
		return fmt.Errorf("the container runtime does not answer: %w", err)
	}
	var problems []error
	for _, want := range []string{runtimeapi.RuntimeReady, runtimeapi.NetworkReady} {
		if err := checkCondition(answer.GetStatus(), want); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// checkCondition returns an error if a condition of the runtime is not true.
func checkCondition(status *runtimeapi.RuntimeStatus, kind string) error {
	for _, c := range status.GetConditions() {
		if c.Type == kind && c.Status {
			return nil
		}
		if c.Type == kind {
			return fmt.Errorf("container runtime is not ready: %s=false reason:%s message:%s", kind, c.Reason, c.Message)
		}
	}
	return fmt.Errorf("container runtime is not ready: it does not report %s", kind)
}

// NotifyNodeStatus calls notify when the machine becomes short of resources for pods, and when the shortage ends. Ping reports whether the runtime is
// ready.
func (r *Runtime) NotifyNodeStatus(_ context.Context, notify func(*corev1.Node)) {
	r.workers.conditions.watch(r.cfg.Node.DeepCopy(), notify)
}

// ConfigureNode writes the properties of the machine into fields of n without a value: capacity, allocatable amounts, system information, and the
// version of the container runtime, if it answers.
func (r *Runtime) ConfigureNode(ctx context.Context, n *corev1.Node) { r.node.fillNode(ctx, n) }
