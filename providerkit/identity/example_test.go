// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// An instance at a service has a name that is the same in every retry, and tags by which it is found after a
// restart.
func Example() {
	owner := identity.Owner{Cluster: "prod", Node: "vk-1"}
	pod := identity.Of(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}})
	name, again := owner.Name(pod), owner.Name(pod)
	fmt.Println(name == again, len(name))

	tags := owner.Tags(pod)
	fmt.Println(owner.Owned(tags))
	_, ok := identity.Owner{Cluster: "test", Node: "vk-1"}.Owned(tags)
	fmt.Println(ok)
	// Output:
	// true 29
	// {default web u1} true
	// false
}
