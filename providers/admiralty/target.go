// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// Labels by which users of Admiralty recognise the nodes of targets.
const (
	prefix = "multicluster.admiralty.io/"
	// LabelProvider is the label and the taint key of target nodes; ProviderName is its value.
	LabelProvider = "virtual-kubelet.io/provider"
	ProviderName  = "admiralty"
	// LabelTargetNamespace and LabelTarget have the namespace and name of the node's Target. LabelClusterTarget
	// has the name of its ClusterTarget.
	LabelTargetNamespace = prefix + "target-namespace"
	LabelTarget          = prefix + "target-name"
	LabelClusterTarget   = prefix + "cluster-target-name"
)

// podChaperon describes the kind PodChaperon, from which an agent of Admiralty creates pods. The agent recreates
// a missing pod only after minutes, and most pods never.
var podChaperon = remotecluster.OwnerKind{
	Resource: schema.GroupVersionResource{Group: "multicluster.admiralty.io", Version: "v1alpha1", Resource: "podchaperons"},
	Kind:     ObjectPodChaperon, Spec: []string{"spec"}, Status: []string{"status"},
}

// ownerKind returns the kind of the owner objects of pods in the target cluster, or nil if the node creates Pods.
func (c Config) ownerKind() *remotecluster.OwnerKind {
	if c.Object == ObjectPodChaperon {
		return &podChaperon
	}
	return nil
}
