// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Labels and annotations of this provider's objects in the remote cluster.
const (
	prefix = "remote.virtual-kubelet.io/"
	// LabelCluster has the name of the home cluster, LabelNode the name of the node, both shortened to label
	// values.
	LabelCluster = prefix + "cluster"
	LabelNode    = prefix + "node"
	// LabelUID has the UID of the home pod.
	LabelUID = prefix + "uid"
	// LabelNamespace has the namespace of the home pod.
	LabelNamespace = prefix + "namespace"
	// labelVolume has the name of the home PersistentVolume that stands for a remote claim.
	labelVolume = prefix + "volume"
	// AnnotationNamespace and AnnotationName have the namespace and name of the home object.
	AnnotationNamespace = prefix + "namespace"
	AnnotationName      = prefix + "name"
	// annotationSent has the images and the keys of labels and annotations from the home pod, so that a key that
	// is removed there is also removed here.
	annotationSent = prefix + "sent"
	// annotationRestarts has the restart counts of containers from before the pod was recreated.
	annotationRestarts = prefix + "restarts-before"
	// annotationHome has the UID of the home cluster, on a claim or a pod.
	annotationHome = prefix + "home-uid"
	// annotationRefresh has the time at which the first token of a Secret must be renewed.
	annotationRefresh = prefix + "refresh-at"
)

// Home identifies a node of a home cluster, which owns remote pods.
type Home struct {
	Cluster, Node string
}

// Labels returns the labels of every object of the node in the remote cluster.
func (h Home) Labels() map[string]string {
	return map[string]string{LabelCluster: labelValue(h.Cluster), LabelNode: labelValue(h.Node)}
}

// Selector selects every object of the node.
func (h Home) Selector() string { return labels.Set(h.Labels()).String() }

// othersSelectors returns selectors that together select every object that does not belong to the node.
func (h Home) othersSelectors() []string {
	cluster, node := labelValue(h.Cluster), labelValue(h.Node)
	return []string{LabelCluster + "!=" + cluster, LabelCluster + "=" + cluster + "," + LabelNode + "!=" + node}
}

// ownsObject reports whether an object belongs to the node.
func (h Home) ownsObject(o metav1.Object) bool {
	l := o.GetLabels()
	return l[LabelCluster] == labelValue(h.Cluster) && l[LabelNode] == labelValue(h.Node)
}

// PodName returns the name of the remote pod. It depends on the UID, too.
func (h Home) PodName(pod *corev1.Pod) string {
	return shortenName(pod.Name, 52) + "-" + shortHash(h.Cluster, h.Node, pod.Namespace, pod.Name, string(pod.UID))
}

// filesName returns the name of the Secret with the tokens and downward API files of a pod.
func (h Home) filesName(pod *corev1.Pod) string { return h.PodName(pod) + "-files" }

// CopyName returns the name of the copy of a ConfigMap or Secret. All pods of the node share the copy.
func (h Home) CopyName(kind, namespace, name string) string {
	return shortenName(name, 200) + "-" + shortHash(h.Cluster, h.Node, kind, namespace, name)
}

// NamespaceName returns the remote namespace for a home namespace. All nodes of the home cluster share it.
func (h Home) NamespaceName(namespace string) string {
	return strings.ToLower(shortenName(h.Cluster+"-"+namespace, 52)) + "-" + shortHash(h.Cluster, namespace)
}

// claimName returns the name of the claim. It cannot collide, because no home namespace has the name "".
func (h Home) claimName() string { return h.NamespaceName("") }

// shortenName shortens a name to at most n characters, for use as a prefix.
func shortenName(s string, n int) string { return strings.TrimRight(s[:min(len(s), n)], "-._") }

// shortHash returns a hash of the parts, with ten hexadecimal digits. Different splits have different hashes.
func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:5])
}

// labelValue returns s if it is short enough for a label value, or else a shortened form.
func labelValue(s string) string {
	if len(s) <= 63 {
		return s
	}
	return shortenName(s, 52) + "-" + shortHash(s)
}

// homeOf returns the namespace, name and UID of the home pod of a remote pod.
func homeOf(remote metav1.Object) (types.NamespacedName, types.UID) {
	a := remote.GetAnnotations()
	return types.NamespacedName{Namespace: a[AnnotationNamespace], Name: a[AnnotationName]}, types.UID(remote.GetLabels()[LabelUID])
}

func podKey(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
