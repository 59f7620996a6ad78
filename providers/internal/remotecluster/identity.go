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

// Labels and annotations of our objects in the remote cluster.
const (
	prefix = "remote.virtual-kubelet.io/"
	// LabelCluster is the name of the home cluster, LabelNode the name of the node, in the form of label values.
	LabelCluster = prefix + "cluster"
	LabelNode    = prefix + "node"
	// LabelUID is the UID of the pod at home.
	LabelUID = prefix + "uid"
	// LabelNamespace is the namespace of the pod at home.
	LabelNamespace = prefix + "namespace"
	// labelVolume has the PersistentVolume at home that stands for a claim.
	labelVolume = prefix + "volume"
	// AnnotationNamespace and AnnotationName are where the object is at home.
	AnnotationNamespace = prefix + "namespace"
	AnnotationName      = prefix + "name"
	// annotationSent has the images, and the keys of the labels and annotations from home, so that a key that
	// home removes is removed.
	annotationSent = prefix + "sent"
	// annotationRestarts has the restarts of containers before the pod was made again.
	annotationRestarts = prefix + "restarts-before"
	// annotationHome is the UID of the home cluster that has a name, or that made a pod.
	annotationHome = prefix + "home-uid"
	// annotationRefresh has the time at which the first token of a Secret must be replaced.
	annotationRefresh = prefix + "refresh-at"
)

// Home is a node of a home cluster, the owner of the pods.
type Home struct {
	Cluster, Node string
}

// Labels returns the labels of every object of the node in the remote cluster.
func (h Home) Labels() map[string]string {
	return map[string]string{LabelCluster: labelValue(h.Cluster), LabelNode: labelValue(h.Node)}
}

// Selector selects every object of the node.
func (h Home) Selector() string { return labels.Set(h.Labels()).String() }

// othersSelectors together select every object that is not the node's: of other home clusters or none, and of
// other nodes of this home.
func (h Home) othersSelectors() []string {
	cluster, node := labelValue(h.Cluster), labelValue(h.Node)
	return []string{LabelCluster + "!=" + cluster, LabelCluster + "=" + cluster + "," + LabelNode + "!=" + node}
}

// ownsObject reports whether an object is the node's.
func (h Home) ownsObject(o metav1.Object) bool {
	l := o.GetLabels()
	return l[LabelCluster] == labelValue(h.Cluster) && l[LabelNode] == labelValue(h.Node)
}

// PodName is the name of a pod in the remote cluster. A pod of the same name with another UID has another one.
func (h Home) PodName(pod *corev1.Pod) string {
	return shortenName(pod.Name, 52) + "-" + shortHash(h.Cluster, h.Node, pod.Namespace, pod.Name, string(pod.UID))
}

// filesName is the name of the Secret with the tokens and the downward API of a pod.
func (h Home) filesName(pod *corev1.Pod) string { return h.PodName(pod) + "-files" }

// CopyName returns the name of the copy of a ConfigMap or Secret, which all pods of the node share.
func (h Home) CopyName(kind, namespace, name string) string {
	return shortenName(name, 200) + "-" + shortHash(h.Cluster, h.Node, kind, namespace, name)
}

// NamespaceName returns the remote namespace for a namespace of the home cluster, which all nodes of the home
// share.
func (h Home) NamespaceName(namespace string) string {
	return strings.ToLower(shortenName(h.Cluster+"-"+namespace, 52)) + "-" + shortHash(h.Cluster, namespace)
}

// claimName returns the name of the claim. No namespace at home has the name "".
func (h Home) claimName() string { return h.NamespaceName("") }

// shortenName cuts a long name, so that a hyphen and more can follow.
func shortenName(s string, n int) string { return strings.TrimRight(s[:min(len(s), n)], "-._") }

// shortHash returns ten hexadecimal digits for the parts, which cannot run into each other.
func shortHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:5])
}

// labelValue returns s if it is short enough for a label, else a shortened form.
func labelValue(s string) string {
	if len(s) <= 63 {
		return s
	}
	return shortenName(s, 52) + "-" + shortHash(s)
}

// homeOf returns where a remote pod is at home.
func homeOf(remote metav1.Object) (types.NamespacedName, types.UID) {
	a := remote.GetAnnotations()
	return types.NamespacedName{Namespace: a[AnnotationNamespace], Name: a[AnnotationName]}, types.UID(remote.GetLabels()[LabelUID])
}

func podKey(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
