// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// Listers reads objects from the caller's listers.
type Listers struct {
	configMaps corev1listers.ConfigMapLister
	secrets    corev1listers.SecretLister
}

// FromListers returns a reader of objects for callers with their own informers. Objects missing in the caches count as nonexistent, so the caches
// must have synced.
func FromListers(configMaps corev1listers.ConfigMapLister, secrets corev1listers.SecretLister) *Listers {
	return &Listers{configMaps: configMaps, secrets: secrets}
}

// ConfigMap returns a shared ConfigMap of the cache. The caller must not change it.
func (l *Listers) ConfigMap(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return l.configMaps.ConfigMaps(namespace).Get(name)
}

// Secret returns a shared Secret of the cache. The caller must not change it.
func (l *Listers) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	return l.secrets.Secrets(namespace).Get(name)
}
