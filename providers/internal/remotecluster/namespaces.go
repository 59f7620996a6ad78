// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// youngFor is the time within which the service account of a new namespace should exist.
const youngFor = 30 * time.Second

// namespaces records the existing remote namespaces.
type namespaces struct {
	of *Cluster

	mu    sync.Mutex
	there map[string]time.Time // guarded by mu; when this process created the namespace, or zero if it existed
}

// remoteName returns the remote namespace for a home namespace, or "" if there is none. ours is true if this
// package creates it.
func (n *namespaces) remoteName(home string) (name string, ours bool) {
	c := n.of.config
	if c.NamespaceOf != nil {
		name, _ = c.NamespaceOf(home) // ensureNamespace returns the error
		return name, false
	}
	if c.Namespace != "" {
		return c.Namespace, false
	}
	if name := c.Namespaces[home]; name != "" {
		return name, false
	}
	return c.Home.NamespaceName(home), true
}

// isUsed reports whether pods of the node may be in a remote namespace.
func (n *namespaces) isUsed(name string) bool {
	c := n.of.config
	if name == "" { // the home namespace has no remote namespace
		return false
	}
	if c.Namespace == name || slices.Contains(slices.Collect(maps.Values(c.Namespaces)), name) {
		return true
	}
	n.mu.Lock()
	_, there := n.there[name]
	n.mu.Unlock()
	return there || n.of.cache.anyIn(name)
}

// ensureNamespace creates the remote namespace for a namespace at home, if it is ours to create and does not exist. It
// refuses a namespace of another owner.
func (n *namespaces) ensureNamespace(ctx context.Context, home string) error {
	if of := n.of.config.NamespaceOf; of != nil {
		_, err := of(home)
		return err
	}
	name, ours := n.remoteName(home)
	n.mu.Lock()
	_, there := n.there[name]
	n.mu.Unlock()
	if !ours || there {
		return nil
	}
	api, c := n.of.client.CoreV1().Namespaces(), n.of.config.Home
	made := time.Time{}
	ns, err := api.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		made = time.Now()
		ns, err = api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{LabelCluster: labelValue(c.Cluster)}, Annotations: map[string]string{AnnotationNamespace: home},
		}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // another node has just created it
			ns, err = api.Get(ctx, name, metav1.GetOptions{})
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("make namespace %s in the remote cluster: %w", name, err)
	case ns.Labels[LabelCluster] != labelValue(c.Cluster) || ns.Annotations[AnnotationNamespace] != home:
		return fmt.Errorf("namespace %s in the remote cluster is not that of %s in the cluster %s: map that to another one", name, home, c.Cluster)
	case ns.DeletionTimestamp != nil:
		return fmt.Errorf("namespace %s is being deleted in the remote cluster", name)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.there == nil {
		n.there = map[string]time.Time{}
	}
	n.there[name] = made
	return nil
}

// recordFailure handles the error of a create in a remote namespace: if the namespace is missing or terminating,
// it is checked again.
func (n *namespaces) recordFailure(home string, err error) {
	if !apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return
	}
	name, _ := n.remoteName(home)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.there, name)
}

// forgetAll makes ensureNamespace check all namespaces again.
func (n *namespaces) forgetAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.there)
}

// isYoung reports whether a create may fail because the namespace was just created.
func (n *namespaces) isYoung(home string) bool {
	name, _ := n.remoteName(home)
	n.mu.Lock()
	defer n.mu.Unlock()
	made := n.there[name]
	return !made.IsZero() && time.Since(made) < youngFor
}
