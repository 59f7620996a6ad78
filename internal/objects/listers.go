// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// Listers reads objects from listers that somebody else keeps.
type Listers struct {
	configMaps corev1listers.ConfigMapLister
	secrets    corev1listers.SecretLister
}

// FromListers returns a reader of objects for callers who bring their own informers.
// What their caches do not hold does not exist: the caches must have synced.
func FromListers(configMaps corev1listers.ConfigMapLister, secrets corev1listers.SecretLister) *Listers {
	return &Listers{configMaps: configMaps, secrets: secrets}
}

// ConfigMap returns a ConfigMap of the cache, which is shared and must not be changed.
func (l *Listers) ConfigMap(_ context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return l.configMaps.ConfigMaps(namespace).Get(name)
}

// Secret returns a Secret of the cache, which is shared and must not be changed.
func (l *Listers) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	return l.secrets.Secrets(namespace).Get(name)
}
