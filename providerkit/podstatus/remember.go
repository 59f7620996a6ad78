// SPDX-License-Identifier: Apache-2.0

package podstatus

import corev1 "k8s.io/api/core/v1"

// Remember sets the end of the previous run, for a backend that reports only one run of a container. The end comes from the last reported
// status, which may be nil. An unobserved end stays unknown.
func (c *Container) Remember(was *corev1.ContainerStatus) {
	if was == nil || c.Last != nil {
		return
	}
	last := was.LastTerminationState.Terminated
	switch ended := was.State.Terminated; {
	case ended != nil && (c.State != Exited || c.Restarts > was.RestartCount):
		last = ended
	case c.Restarts > was.RestartCount:
		return
	}
	if last != nil {
		c.Last = &Run{
			ID: last.ContainerID, StartedAt: last.StartedAt.Time, FinishedAt: last.FinishedAt.Time, ExitCode: new(last.ExitCode), Reason: last.Reason, Message: last.Message,
		}
	}
}
