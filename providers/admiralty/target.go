// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// Labels by which users of Admiralty recognise the nodes of targets.
const (
	prefix = "multicluster.admiralty.io/"
	// LabelProvider is the label and the taint key of nodes for targets; ProviderName is its value.
	LabelProvider = "virtual-kubelet.io/provider"
	ProviderName  = "admiralty"
	// LabelTargetNamespace and LabelTarget name the Target of a node. LabelClusterTarget names its
	// ClusterTarget.
	LabelTargetNamespace = prefix + "target-namespace"
	LabelTarget          = prefix + "target-name"
	LabelClusterTarget   = prefix + "cluster-target-name"
)

// podChaperon describes the kind PodChaperon. An agent of Admiralty makes pods of PodChaperons. If a pod is
// gone, the agent does not make it again for minutes, and for most pods never.
var podChaperon = remotecluster.OwnerKind{
	Resource: schema.GroupVersionResource{Group: "multicluster.admiralty.io", Version: "v1alpha1", Resource: "podchaperons"},
	Kind:     ObjectPodChaperon, Spec: []string{"spec"}, Status: []string{"status"},
}

// ownerKind returns the kind of object that owns pods in the target cluster, or nil if the node creates the pods
// themselves.
func (c Config) ownerKind() *remotecluster.OwnerKind {
	if c.Object == ObjectPodChaperon {
		return &podChaperon
	}
	return nil
}
