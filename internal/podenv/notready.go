// SPDX-License-Identifier: Apache-2.0

package podenv

import "fmt"

// NotReadyError says that a container needs a ConfigMap, a Secret or a key that
// does not exist: the pod has to wait until somebody creates it. It never contains a
// value.
type NotReadyError struct {
	// Container is the name of the container that cannot start.
	Container string
	// Reason is the reason of the event that was recorded, for example
	// MandatorySecretNotFound.
	Reason string
	// Message names what is missing.
	Message string
}

// Error names the container and what is missing.
func (e *NotReadyError) Error() string {
	return fmt.Sprintf("container %s cannot start: %s", e.Container, e.Message)
}
