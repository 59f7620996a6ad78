// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons and messages of the events about hooks that failed. What a hook has said is not in
// them, since it may be secret.
const (
	FailedPostStartHook  = "FailedPostStartHook"
	FailedPreStopHook    = "FailedPreStopHook"
	PostStartHookMessage = "PostStartHook failed"
	PreStopHookMessage   = "PreStopHook failed"
)

// Hook runs a lifecycle hook of a container until it or ctx ends; the caller ends ctx when the
// container has ended. The text of the error is fit for the status of the container, as the
// message of the reason PostStartHookError. An HTTP hook fails only if no answer comes, of whatever code.
func (p *Prober) Hook(ctx context.Context, t Target, hook *corev1.LifecycleHandler) error { return nil }

// PreStop runs the preStop hook of a container, if it has one, for no longer than the grace period, and returns how
// much of that it took.
func (p *Prober) PreStop(ctx context.Context, t Target, grace time.Duration) (took time.Duration, err error) {
	return 0, nil
}
