// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
)

// useSecrets decides where tokens and credentials for pods come from.
func (c *PodController) useSecrets(cfg *PodControllerConfig) {
	secrets := podsecrets.Config{
		Secret: func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
			return c.env.Objects.Secret(ctx, namespace, name)
		},
		Over: func(uid types.UID) {
			if c.certificates.manager != nil {
				c.certificates.manager.Forget(uid)
			}
		},
		Recorder: cfg.EventRecorder,
	}
	secrets.Accounts, _ = cfg.PodClient.(corev1client.ServiceAccountsGetter)
	if c.store != nil {
		secrets.Before = func(ctx context.Context, namespace, account string) {
			c.store.Await(ctx, authorizationv1.ResourceAttributes{
				Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: namespace, Name: account,
			})
		}
	}
	c.secrets = podsecrets.New(secrets)
}
