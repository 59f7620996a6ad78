// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
)

// VerifyNonRoot returns an error if a container that must not run as root would do so, or if that is unknown.
func VerifyNonRoot(pod *corev1.Pod, c *corev1.Container, image User) error {
	sc := effectiveContext(pod, c)
	if sc.RunAsNonRoot == nil || !*sc.RunAsNonRoot {
		return nil
	}
	at := fmt.Sprintf(`(pod: "%s_%s(%s)", container: %s)`, pod.Name, pod.Namespace, pod.UID, c.Name)
	switch {
	case sc.RunAsUser != nil && *sc.RunAsUser == 0:
		return fmt.Errorf("container's runAsUser breaks non-root policy %s", at)
	case sc.RunAsUser != nil:
		return nil
	case image.ID == nil && image.Name != "":
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s", image.Name, at)
	case image.ID == nil || *image.ID == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", at)
	case *image.ID < 0 || *image.ID > math.MaxInt32:
		return fmt.Errorf("container has runAsNonRoot and image has an invalid user id (%d). (Must be 1-(%d)) %s", *image.ID, math.MaxInt32, at)
	}
	return nil
}
