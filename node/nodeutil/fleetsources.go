// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/virtual-kubelet/virtual-kubelet/internal/apiwatch"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// boundPods returns the source of all pods that are bound to a node: a field selector cannot select a set of nodes.
func boundPods(client kubernetes.Interface) *apiwatch.Source {
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	return apiwatch.NewSource(
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = bound
			list, err := pods.List(ctx, options)
			return list, explainRefusal(ctx, "pods", err)
		},
		func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = bound
			w, err := pods.Watch(ctx, options)
			return w, explainRefusal(ctx, "pods", err)
		},
	)
}

// allNodes returns the source of all nodes.
func allNodes(client kubernetes.Interface) *apiwatch.Source {
	nodes := client.CoreV1().Nodes()
	return apiwatch.NewSource(
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := nodes.List(ctx, options)
			return list, explainRefusal(ctx, "nodes", err)
		},
		func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := nodes.Watch(ctx, options)
			return w, explainRefusal(ctx, "nodes", err)
		},
	)
}

// explainRefusal adds the most frequent cause to a Forbidden error.
func explainRefusal(ctx context.Context, resource string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	err = fmt.Errorf("many nodes in one process need to list and watch all %s: "+
		"the identity of one node (system:node:NAME) may not, a service account with a role may: %w", resource, err)
	log.G(ctx).Error(err.Error())
	return err
}
