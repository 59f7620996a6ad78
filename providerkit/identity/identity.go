// SPDX-License-Identifier: Apache-2.0

// Package identity says whose an instance at a service is: by a name that is the pod's for ever, and by tags that a provider finds
// its pods by after a restart.
//
// The guarantee: pods, nodes and clusters of other names or UIDs have other names at the service; and what has the tags of another
// cluster or node is never Owned.
//
// What surprises: a name has nothing of the pod's in it that people could read, as services allow few characters; the tags have.
package identity

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Keys of the tags. Every service that has tags allows these characters, and values as Kubernetes has them.
const (
	TagCluster   = "vk-cluster"
	TagNode      = "vk-node"
	TagNamespace = "vk-namespace"
	TagName      = "vk-name"
	TagUID       = "vk-uid"
)

// Owner is a node of a cluster: whose the pods are. Two clusters that use one account have different names.
type Owner struct{ Cluster, Node string }

// Pod is which pod an instance is.
type Pod struct {
	Namespace, Name string
	UID             types.UID
}

// Of returns which pod it is.
func Of(pod *corev1.Pod) Pod { return Pod{pod.Namespace, pod.Name, pod.UID} }

// Tags are those of a pod.
func (o Owner) Tags(pod Pod) map[string]string {
	return map[string]string{
		TagCluster: o.Cluster, TagNode: o.Node, TagNamespace: pod.Namespace, TagName: pod.Name, TagUID: string(pod.UID),
	}
}

// Owned returns which pod has these tags. False is what is not the owner's, or has not all of them.
func (o Owner) Owned(tags map[string]string) (Pod, bool) {
	pod := Pod{tags[TagNamespace], tags[TagName], types.UID(tags[TagUID])}
	return pod, o.Cluster != "" && o.Node != "" && tags[TagCluster] == o.Cluster && tags[TagNode] == o.Node &&
		pod.Namespace != "" && pod.Name != "" && pod.UID != ""
}

// Name returns a name for a pod that is the same for ever: "vk-" and lower case letters and digits, 29 characters. It is fit for the
// token by which a service knows a create that is asked again, too.
func (o Owner) Name(pod Pod) string { return "vk-" + Hash(o.Cluster, o.Node, string(pod.UID)) }

// Hash returns 26 lower case letters and digits that stand for these parts in this order.
func Hash(parts ...string) string {
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(strconv.Itoa(len(part)) + ":" + part) // so that a/bc is not ab/c
	}
	sum := sha256.Sum256([]byte(all.String()))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
