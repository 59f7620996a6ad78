// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
)

// PullCredentials provides the credentials for pulling the images of pods. It is safe for concurrent use.
type PullCredentials = podinputs.PullCredentials

// RegistryCredential is the login for a registry. Formatting and JSON leave the secrets out.
type RegistryCredential = podinputs.RegistryCredential

// pullCredentials implements PullCredentials for a PullCredentialsUser.
type pullCredentials struct{ manager *podsecrets.Manager }

// PullCredentials returns the credentials for the pod.
func (p pullCredentials) PullCredentials(ctx context.Context, pod *corev1.Pod) ([]RegistryCredential, error) {
	logins, err := p.manager.Logins(ctx, pod)
	if err != nil {
		return nil, err
	}
	all := make([]RegistryCredential, 0, len(logins))
	for _, l := range logins {
		all = append(all, RegistryCredential{
			Registry: l.Registry, Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken, RegistryToken: l.RegistryToken,
		})
	}
	return all, nil
}
