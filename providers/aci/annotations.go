// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// AnnotationIdentity names managed identities of a pod, separated by commas. The configuration must allow each
// of them.
const AnnotationIdentity = "virtual-kubelet.io/identity"

// annotationPrefixes are the prefixes of the annotations of azure-aci.
var annotationPrefixes = []string{"virtual-kubelet.io/", "virtualkubelet.io/"}

// dnsLabel matches the DNS labels that ACI accepts.
var dnsLabel = regexp.MustCompile(`^[a-z][-a-z0-9]{3,61}[a-z0-9]$`)

// setters are the known annotations. Each setter returns "", or a description of the wanted value if the value
// is wrong.
var setters = map[string]func(out *aci.ContainerGroupPropertiesProperties, value string) (want string){
	"virtual-kubelet.io/container-sku": func(out *aci.ContainerGroupPropertiesProperties, value string) string {
		sku := aci.ContainerGroupSKU(value)
		if !slices.Contains(aci.PossibleContainerGroupSKUValues(), sku) {
			return "Standard, Dedicated or Confidential"
		}
		out.SKU = &sku
		return ""
	},
	"virtual-kubelet.io/confidential-compute-cce-policy": func(out *aci.ContainerGroupPropertiesProperties, value string) string {
		if value == "" {
			return "a policy in base64"
		}
		out.ConfidentialComputeProperties = &aci.ConfidentialComputeProperties{CcePolicy: &value}
		return ""
	},
	"virtual-kubelet.io/priority": func(out *aci.ContainerGroupPropertiesProperties, value string) string {
		priority := aci.ContainerGroupPriority(value)
		if !slices.Contains(aci.PossibleContainerGroupPriorityValues(), priority) {
			return "Regular or Spot"
		}
		out.Priority = &priority
		return ""
	},
	"virtualkubelet.io/dnsnamelabel": func(out *aci.ContainerGroupPropertiesProperties, value string) string {
		if out.IPAddress == nil || !dnsLabel.MatchString(value) {
			return "5 to 63 lowercase letters, digits and hyphens, a letter first, for a group with ports and a public address"
		}
		out.IPAddress.DNSNameLabel = &value
		return ""
	},
}

// known returns the names of all annotations that a configuration can allow.
func known() []string { return slices.Sorted(maps.Keys(setters)) }

// annotate applies the annotations of a pod that the configuration allows. It refuses other annotations with these prefixes: a pod
// that asks to be confidential, or for a lower price, must not run without it.
func annotate(out *aci.ContainerGroupPropertiesProperties, pod *corev1.Pod, allowed []string) error {
	for _, name := range slices.Sorted(maps.Keys(pod.Annotations)) {
		if !slices.ContainsFunc(annotationPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) || name == AnnotationIdentity {
			continue
		}
		if setters[name] == nil || !slices.Contains(allowed, name) {
			return errdefs.InvalidInputf("metadata.annotations[%s]: the configuration of this node does not let pods set it", name)
		}
		if want := setters[name](out, pod.Annotations[name]); want != "" {
			return errdefs.InvalidInputf("metadata.annotations[%s]: %q: want %s", name, pod.Annotations[name], want)
		}
	}
	return nil
}
