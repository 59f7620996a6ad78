// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// RedactStatus removes secrets from the texts of a status, as RedactError does for an error.
func (c *PodController) RedactStatus(namespace, name string, status *corev1.PodStatus) {
	redact.Status(status, c.secrets.Named(namespace, name)...)
}

// RedactError returns a redacted copy of err, of at most 1 KiB and of the same kind. It removes the values of the pod's Secrets that this
// process has read, the tokens and passwords that the provider received for the pod, and texts that look like credentials. With an empty
// name it covers all pods. It is for programs that log or return a provider's message; the controller itself redacts all its messages in
// this way.
func (c *PodController) RedactError(namespace, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case name == "":
		return redact.Error(err, c.secrets.All()...)
	default:
		return redact.Error(err, c.secrets.Named(namespace, name)...)
	}
}
