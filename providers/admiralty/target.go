// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// Labels by which Admiralty's users know the nodes of targets.
const (
	prefix = "multicluster.admiralty.io/"
	// LabelProvider is the label, and the key of the taint, of nodes that are targets; ProviderName is its value.
	LabelProvider = "virtual-kubelet.io/provider"
	ProviderName  = "admiralty"
	// LabelTargetNamespace and LabelTarget name the Target that a node is, LabelClusterTarget the ClusterTarget.
	LabelTargetNamespace = prefix + "target-namespace"
	LabelTarget          = prefix + "target-name"
	LabelClusterTarget   = prefix + "cluster-target-name"
)

// podChaperon is the kind of which an agent of Admiralty makes pods. One that is gone it does not make again for minutes, and for
// most pods never.
var podChaperon = remotecluster.OwnerKind{
	Resource: schema.GroupVersionResource{Group: "multicluster.admiralty.io", Version: "v1alpha1", Resource: "podchaperons"},
	Kind:     ObjectPodChaperon, Spec: []string{"spec"}, Status: []string{"status"},
}

// owner is what pods are made of in the target cluster, nil for the pods themselves.
func (c Config) owner() *remotecluster.OwnerKind {
	if c.Object == ObjectPodChaperon {
		return &podChaperon
	}
	return nil
}
