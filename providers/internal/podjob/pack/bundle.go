// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Bundle returns the bundle for the job of a pod with containers of that runtime. It sets the renewal time of tokens in in.
func Bundle(ctx context.Context, in *service.Inputs, of cli.ProviderInput, runtime string) (b podjob.Bundle, err error) {
	b = podjob.Bundle{
		Pod: in.Pod.DeepCopy(), Node: of.Node.DeepCopy(), DNSDomain: of.KubeClusterDomain, Containers: in.Containers,
		Runtime: runtime, ConfigMaps: map[string]*corev1.ConfigMap{}, Secrets: map[string]*corev1.Secret{}, Tokens: map[string]podjob.Token{},
	}
	for i := range in.Pod.Spec.Volumes {
		if err := addVolume(ctx, in, &in.Pod.Spec.Volumes[i], &b); err != nil {
			return b, fmt.Errorf("volume %s: %w", in.Pod.Spec.Volumes[i].Name, err)
		}
	}
	if runtime != "" {
		for _, l := range in.Logins {
			b.Logins = append(b.Logins, podjob.Login(l))
		}
	}
	return b, nil
}

// addVolume adds the objects of a volume. Optional objects may be missing.
func addVolume(ctx context.Context, in *service.Inputs, v *corev1.Volume, b *podjob.Bundle) (err error) {
	optional := func(o *bool, err error) error {
		if apierrors.IsNotFound(err) && o != nil && *o {
			return nil
		}
		return err
	}
	configMap := func(name string, o *bool) error {
		got, err := in.Objects.ConfigMap(ctx, in.Pod, name)
		if err == nil {
			b.ConfigMaps[name] = got
		}
		return optional(o, err)
	}
	secret := func(name string, o *bool) error {
		got, err := in.Objects.Secret(ctx, in.Pod, name)
		if err == nil {
			b.Secrets[name] = got
		}
		return optional(o, err)
	}
	switch {
	case v.ConfigMap != nil:
		return configMap(v.ConfigMap.Name, v.ConfigMap.Optional)
	case v.Secret != nil:
		return secret(v.Secret.SecretName, v.Secret.Optional)
	case v.Projected == nil:
		return nil
	}
	for _, s := range v.Projected.Sources {
		switch {
		case s.ConfigMap != nil:
			err = configMap(s.ConfigMap.Name, s.ConfigMap.Optional)
		case s.Secret != nil:
			err = secret(s.Secret.Name, s.Secret.Optional)
		case s.ServiceAccountToken != nil && in.Tokens != nil:
			t, tokenErr := in.Tokens.Token(ctx, in.Pod, s.ServiceAccountToken)
			if err = tokenErr; err == nil {
				b.Tokens[podjob.TokenKey(s.ServiceAccountToken)] = podjob.Token{Token: t.Token, ExpiresAt: t.ExpiresAt, RefreshAt: t.RefreshAt}
				if in.RenewAt.IsZero() || t.RefreshAt.Before(in.RenewAt) {
					in.RenewAt = t.RefreshAt
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
