// SPDX-License-Identifier: Apache-2.0

// Package identity identifies the pod of an instance at a service. Each pod has a permanent name there, and tags
// by which a provider finds its pods after a restart.
//
// The guarantee: pods, nodes and clusters with different names or UIDs have different names at the service. An instance with the tags of
// another cluster or node is never Owned.
//
// Note: the name of an instance contains no readable part of the pod's name, because services allow few
// characters. The tags contain the pod's name.
package identity

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// These are the keys of the tags. Every service with tags allows their characters, and values from Kubernetes.
const (
	TagCluster   = "vk-cluster"
	TagNode      = "vk-node"
	TagNamespace = "vk-namespace"
	TagName      = "vk-name"
	TagUID       = "vk-uid"
)

// Owner is the node that owns pods, and its cluster. Two clusters with the same account have different names.
type Owner struct{ Cluster, Node string }

// Pod identifies the pod of an instance.
type Pod struct {
	Namespace, Name string
	UID             types.UID
}

// Of returns the identity of a pod.
func Of(pod *corev1.Pod) Pod { return Pod{pod.Namespace, pod.Name, pod.UID} }

// Tags returns the tags of a pod's instance.
func (o Owner) Tags(pod Pod) map[string]string {
	return map[string]string{
		TagCluster: o.Cluster, TagNode: o.Node, TagNamespace: pod.Namespace, TagName: pod.Name, TagUID: string(pod.UID),
	}
}

// Owned returns the pod with these tags. It returns false if the tags belong to another owner or are incomplete.
func (o Owner) Owned(tags map[string]string) (Pod, bool) {
	pod := Pod{tags[TagNamespace], tags[TagName], types.UID(tags[TagUID])}
	return pod, o.Cluster != "" && o.Node != "" && tags[TagCluster] == o.Cluster && tags[TagNode] == o.Node &&
		pod.Namespace != "" && pod.Name != "" && pod.UID != ""
}

// Name returns the permanent name of a pod's instance: "vk-" and lower case letters and digits, 29 characters.
// The name can also be the token by which a service recognises a repeated create.
func (o Owner) Name(pod Pod) string { return "vk-" + Hash(o.Cluster, o.Node, string(pod.UID)) }

// Hash returns 26 lower case letters and digits for these parts in this order.
func Hash(parts ...string) string {
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(strconv.Itoa(len(part)) + ":" + part) // so that a/bc differs from ab/c
	}
	sum := sha256.Sum256([]byte(all.String()))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
