// SPDX-License-Identifier: Apache-2.0

package podsecrets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Reasons of events about image pull Secrets. The first one is a kubelet's.
const (
	eventNoPullSecret  = "FailedToRetrieveImagePullSecret"
	eventBadPullSecret = "InvalidImagePullSecret"
)

// Logins returns the credentials in the pod's imagePullSecrets, longer registry names first. As in a kubelet, a Secret that does not exist or is not
// for a registry is skipped with an event of the pod. A Secret that could not be read is an error. Only namespace, name and UID of the pod are used.
func (m *Manager) Logins(ctx context.Context, pod *corev1.Pod) ([]Login, error) {
	p, api, err := m.findPod(pod)
	if err != nil {
		return nil, err
	}
	var all []Login
	var missing, seen []string
	for _, ref := range api.Spec.ImagePullSecrets {
		if ref.Name == "" || slices.Contains(seen, ref.Name) {
			continue
		}
		seen = append(seen, ref.Name)
		secret, err := m.ReadSecret(ctx, api.UID, api.Namespace, ref.Name)
		if apierrors.IsNotFound(err) {
			missing = append(missing, ref.Name)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read image pull secret %s/%s: %w", api.Namespace, ref.Name, err)
		}
		found, err := readLogins(secret)
		if err != nil {
			m.cfg.Recorder.Event(api, corev1.EventTypeWarning, eventBadPullSecret, fmt.Sprintf("image pull secret %s is not used: %v", ref.Name, err))
			continue
		}
		for _, login := range found {
			p.values.Remember("login/"+ref.Name+"/"+login.Registry, secret.ResourceVersion, login.secretParts()...)
		}
		all = append(all, found...)
	}
	if len(missing) > 0 {
		m.cfg.Recorder.Event(api, corev1.EventTypeWarning, eventNoPullSecret,
			fmt.Sprintf("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", strings.Join(missing, ", ")))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.over {
		return nil, goneError(api)
	}
	slices.SortStableFunc(all, func(a, b Login) int { return len(b.Registry) - len(a.Registry) })
	return all, nil
}
