// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// group and version are the API group and version of Liqo's offloading objects.
const (
	group   = "offloading.liqo.io"
	version = "v1beta1"
)

// labelRemote is the label of a NamespaceMap with the ID of its remote cluster.
const labelRemote = "liqo.io/remoteID"

// phaseAccepted is the phase of a remote namespace that accepts pods.
const phaseAccepted = "Accepted"

// namespaces maps home namespaces to remote namespaces.
type namespaces struct {
	config Config
	client dynamic.ResourceInterface // for NamespaceMaps of the tenant namespace; nil: none are read
	maps   cache.SharedIndexInformer // the NamespaceMaps of the tenant namespace; nil: none are read

	failures remotecluster.Failures
}

// newNamespaces returns the namespaces of a configuration. It prepares a watch of NamespaceMaps if home is not
// nil.
func newNamespaces(config Config, home *rest.Config) (*namespaces, error) {
	n := &namespaces{config: config}
	if home == nil {
		return n, nil
	}
	client, err := dynamic.NewForConfig(home)
	if err != nil {
		return nil, fmt.Errorf("make the client of the home cluster: %w", err)
	}
	resource := schema.GroupVersionResource{Group: group, Version: version, Resource: "namespacemaps"}
	n.client = client.Resource(resource).Namespace(config.TenantNamespace)
	n.maps = dynamicinformer.NewFilteredDynamicInformer(client, resource, config.TenantNamespace, 0, cache.Indexers{}, nil).Informer()
	_ = n.maps.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { // cannot fail before the informer runs
		n.failures.Note("", err)
	})
	return n, nil
}

// watchMaps watches the NamespaceMaps until ctx ends.
func (n *namespaces) watchMaps(ctx context.Context) {
	if n.maps != nil {
		n.maps.RunWithContext(ctx)
	}
}

// unlistedError returns an error if the NamespaceMaps were not listed yet.
func (n *namespaces) unlistedError() error {
	if n.maps == nil || n.maps.HasSynced() {
		return nil
	}
	if err := n.failures.Of(""); err != nil {
		return n.unreadError(err)
	}
	return fmt.Errorf("the NamespaceMap in namespace %s of the home cluster was not read yet", n.config.TenantNamespace)
}

// checkMaps returns an error if the NamespaceMaps were not listed yet, or cannot be read any more.
func (n *namespaces) checkMaps(ctx context.Context) error {
	if err := n.unlistedError(); err != nil {
		return err
	}
	err := n.failures.Check(ctx, func(ctx context.Context, _ string, one metav1.ListOptions) error {
		_, err := n.client.List(ctx, one)
		return err
	})
	if err != nil {
		return n.unreadError(err)
	}
	return nil
}

func (n *namespaces) unreadError(err error) error {
	return fmt.Errorf("read the NamespaceMap in namespace %s of the home cluster: %w", n.config.TenantNamespace, err)
}

// examineMaps returns an error if the NamespaceMaps cannot be read, or none is for the remote cluster. It does
// not need RunInBackground.
func (n *namespaces) examineMaps(ctx context.Context) error {
	if n.client == nil {
		return nil
	}
	list, err := n.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return n.unreadError(err)
	}
	if !slices.ContainsFunc(list.Items, func(m unstructured.Unstructured) bool { return n.isOf(&m) }) {
		return n.unpeeredError()
	}
	return nil
}

// isOf reports whether a NamespaceMap is for the remote cluster.
func (n *namespaces) isOf(m metav1.Object) bool {
	to := labelOf(m)
	return to == "" || to == n.config.ForeignClusterID
}

func (n *namespaces) unpeeredError() error {
	return errdefs.NotFoundf("the namespace %s has no NamespaceMap of the cluster %s: is it peered?", n.config.TenantNamespace, n.config.ForeignClusterID)
}

// remoteOf returns the remote namespace of a home namespace. If there is none, the error is errdefs.ErrNotFound,
// with advice.
func (n *namespaces) remoteOf(home string) (string, error) {
	if remote := n.config.Namespaces[home]; remote != "" {
		return remote, nil
	}
	if err := n.unlistedError(); err != nil {
		return "", err
	}
	if n.maps == nil {
		return "", errdefs.NotFoundf("namespace %s is not offloaded to the cluster %s: name its remote namespace under namespaces", home, n.config.ForeignClusterID)
	}
	said := 0
	for _, o := range n.maps.GetStore().List() {
		m, ok := o.(*unstructured.Unstructured)
		if !ok || !n.isOf(m) {
			continue
		}
		said++
		name, phase := mappedNamespace(m, home)
		switch {
		case name == "":
		case phase == phaseAccepted:
			return name, nil
		default:
			return name, fmt.Errorf("namespace %s of the cluster %s, for %s, is %s", name, n.config.ForeignClusterID, home, phase)
		}
	}
	if said == 0 {
		return "", fmt.Errorf("namespace %s is not offloaded: %w", home, n.unpeeredError())
	}
	return "", errdefs.NotFoundf("namespace %s is not offloaded to the cluster %s: liqoctl offload namespace %s", home, n.config.ForeignClusterID, home)
}

func labelOf(m metav1.Object) string { return m.GetLabels()[labelRemote] }

// mappedNamespace returns the remote namespace of a home namespace in a NamespaceMap, and its phase.
func mappedNamespace(m *unstructured.Unstructured, home string) (name, phase string) {
	found, _, _ := unstructured.NestedFieldNoCopy(m.Object, "status", "currentMapping") // a value of another type maps no namespace
	current, _ := found.(map[string]any)
	entry, _ := current[home].(map[string]any)
	name, _ = entry["remoteNamespace"].(string)
	phase, _ = entry["phase"].(string)
	return name, phase
}
