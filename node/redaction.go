// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// RedactStatus takes out of the texts of a status what RedactError takes out of an error.
func (c *PodController) RedactStatus(namespace, name string, status *corev1.PodStatus) {
	redact.Status(status, c.secrets.Named(namespace, name)...)
}

// RedactError returns an error that says what err says, without what the Secrets of
// the pod have in them that this process has read for it, without the tokens and passwords that the
// provider was given for it, without what looks like a credential, and in
// at most 1 KiB. It is of the same kind as err. With an empty name it is about all pods.
// It is for programs that log or answer what a provider said; the controller itself
// says nothing that has not gone through it.
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
