// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"maps"
	"slices"
	"strings"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// identityOf returns the managed identities of a group: the identities that its pod names, and the identities
// for pulling its images. The right to write pods alone gives no identity.
func identityOf(config Config, pod *corev1.Pod, logins []*aci.ImageRegistryCredential) (*aci.ContainerGroupIdentity, error) {
	all := map[string]*aci.UserAssignedIdentities{}
	for name := range strings.SplitSeq(pod.Annotations[AnnotationIdentity], ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		i := slices.IndexFunc(config.Identities, func(id string) bool { return strings.EqualFold(id, name) })
		if i < 0 {
			return nil, errdefs.InvalidInputf("metadata.annotations[%s]: %q is none of identities of this node's configuration", AnnotationIdentity, name)
		}
		all[config.Identities[i]] = &aci.UserAssignedIdentities{}
	}
	for _, l := range logins {
		if l.Identity != nil && !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(id string) bool { return strings.EqualFold(id, *l.Identity) }) {
			all[*l.Identity] = &aci.UserAssignedIdentities{}
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return &aci.ContainerGroupIdentity{Type: new(aci.ResourceIdentityTypeUserAssigned), UserAssignedIdentities: all}, nil
}
