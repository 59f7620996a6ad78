// SPDX-License-Identifier: Apache-2.0

package podenv

import "fmt"

// NotReadyError means that a container needs a missing ConfigMap, Secret or key: the pod waits until it is
// created. The error never contains a value.
type NotReadyError struct {
	// Container is the name of the waiting container.
	Container string
	// Reason is the reason of the recorded event, for example MandatorySecretNotFound.
	Reason string
	// Message names the missing object or key.
	Message string
}

// Error names the container, and the missing object or key.
func (e *NotReadyError) Error() string {
	return fmt.Sprintf("container %s cannot start: %s", e.Container, e.Message)
}
