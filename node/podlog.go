// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// podLog returns a logger with the fields for a pod. The field names are those of Kubernetes' contextual logging.
func podLog(ctx context.Context, key string, uid types.UID) log.Logger {
	logger := log.G(ctx).WithField("pod", key)
	if uid != "" {
		logger = logger.WithField("podUID", string(uid))
	}
	return logger
}

// withDuration adds to logger the time since begin, in whole units.
func withDuration(logger log.Logger, begin time.Time, unit time.Duration) log.Logger {
	return logger.WithField("duration", time.Since(begin).Truncate(unit).String())
}

// logStopped logs that a deleted pod has stopped when it is removed from the API server, unless logEnd has logged its end before.
func logStopped(ctx context.Context, key string, api *corev1.Pod, st *podState) {
	if st.askedAt.IsZero() || st.endLogged || !st.removedAt.IsZero() {
		return
	}
	reason := "Deleted"
	if st.failure != nil {
		reason = st.failure.Reason
	}
	withDuration(podLog(ctx, key, api.UID).WithField("reason", reason), st.askedAt, time.Millisecond).Info("the pod was stopped")
}

// logEnd logs that a pod has ended if the status now shows this for the first time. logStopped logs the stop of a deleted pod instead.
// logEnd reports whether it has logged a line.
func logEnd(ctx context.Context, key string, api *corev1.Pod, now *corev1.PodStatus) bool {
	if api.DeletionTimestamp != nil || lifecycle.Terminal(&api.Status) || !lifecycle.Terminal(now) {
		return false
	}
	logger := podLog(ctx, key, api.UID).WithField("reason", endReason(now))
	if now.StartTime != nil {
		logger = withDuration(logger, now.StartTime.Time, time.Second) // a status has whole seconds
	}
	if now.Phase == corev1.PodSucceeded {
		logger.Info("the pod has ended")
		return true
	}
	if now.Message != "" {
		logger = logger.WithField("message", now.Message)
	}
	logger.Info("the pod has failed")
	return true
}

// endReason returns why a pod has ended: the reason of its status, else of the first failed container, else of the first container.
func endReason(s *corev1.PodStatus) string {
	if s.Reason != "" {
		return s.Reason
	}
	reason := string(s.Phase)
	for i, c := range append(s.InitContainerStatuses[:len(s.InitContainerStatuses):len(s.InitContainerStatuses)], s.ContainerStatuses...) {
		end := c.State.Terminated
		switch {
		case end == nil || end.Reason == "":
		case end.ExitCode != 0:
			return fmt.Sprintf("%s (container %s, exit code %d)", end.Reason, c.Name, end.ExitCode)
		case i == 0:
			reason = end.Reason
		}
	}
	return reason
}
