// SPDX-License-Identifier: Apache-2.0

// Package podservices reads services for the environments of pods from a lister of client-go.
//
// Its guarantees are those of the lister.
//
// Note: it is separate from package podenv, so that a program that resolves pods without an API server needs no client.
package podservices

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// Lister implements podenv.Services.
type Lister struct{ corev1listers.ServiceLister }

// ListServices implements podenv.Services.
func (l Lister) ListServices(namespace string) ([]*corev1.Service, error) {
	return l.Services(namespace).List(labels.Everything())
}

// GetService implements podenv.Services.
func (l Lister) GetService(namespace, name string) (*corev1.Service, error) {
	return l.Services(namespace).Get(name)
}
