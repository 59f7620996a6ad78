// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podsecrets"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// useSecrets decides where tokens and credentials for pods come from.
func (c *PodController) useSecrets(cfg *PodControllerConfig) {
	secrets := podsecrets.Config{
		Secret: func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
			return c.env.Objects.Secret(ctx, namespace, name)
		},
		Over: func(uid types.UID) {
			if c.trust.certificates != nil {
				c.trust.certificates.Forget(uid)
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

// offerSecrets tells a provider that wants to know where it gets what its pods may have.
func (c *PodController) offerSecrets(ctx context.Context) error {
	if user, ok := c.provider.(PodTokensUser); ok {
		err := (&providercall.Caller{}).Do(ctx, "UsePodTokens", func(context.Context) error {
			user.UsePodTokens(podTokens{c.secrets})
			return nil
		})
		if err != nil {
			return err
		}
	}
	if user, ok := c.provider.(PullCredentialsUser); ok {
		return (&providercall.Caller{}).Do(ctx, "UsePullCredentials", func(context.Context) error {
			user.UsePullCredentials(pullCredentials{c.secrets})
			return nil
		})
	}
	return nil
}

// objectsOf reads for one pod, and remembers what must not be said about it.
type objectsOf struct {
	c   *PodController
	uid types.UID
}

// ConfigMap reads a ConfigMap.
func (o objectsOf) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return o.c.env.Objects.ConfigMap(ctx, namespace, name)
}

// Secret reads a Secret.
func (o objectsOf) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return o.c.secrets.ReadSecret(ctx, o.uid, namespace, name)
}

// withRedaction returns a context for calls about the pods of a name: what the provider says
// there is without their secrets.
func (c *PodController) withRedaction(ctx context.Context, key string) context.Context {
	return redact.With(ctx, func() []*redact.Values {
		namespace, name, _ := cache.SplitMetaNamespaceKey(key)
		return c.secrets.Named(namespace, name)
	})
}

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
