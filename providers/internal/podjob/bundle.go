// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
)

// bundle answers podruntime from the bundle of the host. It reads objects and tokens again each time, because the node replaces them.
type bundle struct {
	Bundle
	host    Host
	address string
	mu      sync.Mutex
}

func openBundle(ctx context.Context, host Host) (*bundle, error) {
	ctx, cancel := context.WithTimeout(ctx, hostTime)
	defer cancel()
	first, err := host.Bundle(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the pod: %w", err)
	}
	return &bundle{Bundle: first, host: host}, nil
}

// readAgain returns the current bundle of the host, or the last one if the host cannot read it.
func (b *bundle) readAgain(ctx context.Context) Bundle {
	ctx, cancel := context.WithTimeout(ctx, hostTime)
	defer cancel()
	now, err := b.host.Bundle(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.ConfigMaps, b.Secrets, b.Tokens, b.Logins = now.ConfigMaps, now.Secrets, now.Tokens, now.Logins
	}
	return b.Bundle
}

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

// ConfigMap implements node.PodObjects.
func (b *bundle) ConfigMap(ctx context.Context, _ *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	if o := b.readAgain(ctx).ConfigMaps[name]; o != nil {
		return o, nil
	}
	return nil, notFound("configmaps", name)
}

// Secret implements node.PodObjects.
func (b *bundle) Secret(ctx context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	if o := b.readAgain(ctx).Secrets[name]; o != nil {
		return o, nil
	}
	return nil, notFound("secrets", name)
}

// Container implements node.PodObjects. Only this process knows the addresses of the pod.
func (b *bundle) Container(_ context.Context, _ *corev1.Pod, name string) (*corev1.Container, error) {
	c := b.Containers[name]
	if c == nil {
		return nil, fmt.Errorf("container %s is not one of the pod", name)
	}
	c = c.DeepCopy()
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from == nil || from.FieldRef == nil {
			continue
		}
		switch from.FieldRef.FieldPath {
		case "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs":
			c.Env[i].Value, c.Env[i].ValueFrom = b.address, nil
		}
	}
	return c, nil
}

// PullCredentials implements node.PullCredentials.
func (b *bundle) PullCredentials(ctx context.Context, _ *corev1.Pod) (all []podinputs.RegistryCredential, _ error) {
	for _, l := range b.readAgain(ctx).Logins {
		all = append(all, podinputs.RegistryCredential(l))
	}
	return all, nil
}

// TokenKey names the token of a source.
func TokenKey(s *corev1.ServiceAccountTokenProjection) string {
	var seconds int64
	if s.ExpirationSeconds != nil {
		seconds = *s.ExpirationSeconds
	}
	return fmt.Sprintf("%s/%d", s.Audience, seconds)
}

// Token implements node.PodTokens.
func (b *bundle) Token(ctx context.Context, _ *corev1.Pod, source *corev1.ServiceAccountTokenProjection) (podinputs.PodToken, error) {
	t, ok := b.readAgain(ctx).Tokens[TokenKey(source)]
	if !ok {
		return podinputs.PodToken{}, errdefs.InvalidInput("no volume of the pod has this token")
	}
	return podinputs.PodToken{Token: t.Token, ExpiresAt: t.ExpiresAt, RefreshAt: t.RefreshAt}, nil
}
