// SPDX-License-Identifier: Apache-2.0

// Package podservices reads services for the environments of pods from a lister of client-go.
//
// It promises nothing but what the lister does.
//
// What surprises: it is apart from package podenv, so that who resolves a pod without an API server has no client of one.
package podservices

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// Lister is a podenv.Services.
type Lister struct{ corev1listers.ServiceLister }

// ListServices implements podenv.Services.
func (l Lister) ListServices(namespace string) ([]*corev1.Service, error) {
	return l.Services(namespace).List(labels.Everything())
}

// GetService implements podenv.Services.
func (l Lister) GetService(namespace, name string) (*corev1.Service, error) {
	return l.Services(namespace).Get(name)
}
