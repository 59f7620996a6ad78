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

// annotationPrefixes are those of annotations that azure-aci had.
var annotationPrefixes = []string{"virtual-kubelet.io/", "virtualkubelet.io/"}

// dnsLabel is what ACI takes as the label of a name.
var dnsLabel = regexp.MustCompile(`^[a-z][-a-z0-9]{3,61}[a-z0-9]$`)

// setters are the annotations that are known. Each returns what it wants, "" if it has it.
var setters = map[string]func(m mapping, out *aci.ContainerGroupPropertiesProperties, value string) (want string){
	"virtual-kubelet.io/container-sku": func(_ mapping, out *aci.ContainerGroupPropertiesProperties, value string) string {
		sku := aci.ContainerGroupSKU(value)
		if !slices.Contains(aci.PossibleContainerGroupSKUValues(), sku) {
			return "Standard, Dedicated or Confidential"
		}
		out.SKU = &sku
		return ""
	},
	"virtual-kubelet.io/confidential-compute-cce-policy": func(_ mapping, out *aci.ContainerGroupPropertiesProperties, value string) string {
		if value == "" {
			return "a policy in base64"
		}
		out.ConfidentialComputeProperties = &aci.ConfidentialComputeProperties{CcePolicy: &value}
		return ""
	},
	"virtual-kubelet.io/priority": func(_ mapping, out *aci.ContainerGroupPropertiesProperties, value string) string {
		priority := aci.ContainerGroupPriority(value)
		if !slices.Contains(aci.PossibleContainerGroupPriorityValues(), priority) {
			return "Regular or Spot"
		}
		out.Priority = &priority
		return ""
	},
	"virtualkubelet.io/dnsnamelabel": func(_ mapping, out *aci.ContainerGroupPropertiesProperties, value string) string {
		if out.IPAddress == nil || !dnsLabel.MatchString(value) {
			return "5 to 63 lowercase letters, digits and hyphens, a letter first, for a group with ports and a public address"
		}
		out.IPAddress.DNSNameLabel = &value
		return ""
	},
}

// known are the names of all annotations that can be allowed.
func known() []string { return slices.Sorted(maps.Keys(setters)) }

// annotations sets what a pod says in the words of ACI, as far as the configuration lets it. Others of these prefixes are refused: a pod that
// is to be confidential, or to cost less, must not run otherwise.
func (m mapping) annotations(pod *corev1.Pod, out *aci.ContainerGroupPropertiesProperties) error {
	for _, name := range slices.Sorted(maps.Keys(pod.Annotations)) {
		if !slices.ContainsFunc(annotationPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		if setters[name] == nil || !slices.Contains(m.config.Annotations, name) {
			return errdefs.InvalidInputf("metadata.annotations[%s]: the configuration of this node does not let pods set it", name)
		}
		if want := setters[name](m, out, pod.Annotations[name]); want != "" {
			return errdefs.InvalidInputf("metadata.annotations[%s]: %q: want %s", name, pod.Annotations[name], want)
		}
	}
	return nil
}

// spot refuses what a group of the priority Spot cannot have. The configuration of a node says it of all its pods.
func (m mapping) spot(pod *corev1.Pod, out *aci.ContainerGroupPropertiesProperties) error {
	if *out.Priority != aci.ContainerGroupPrioritySpot {
		return nil
	}
	at := "spec"
	for _, name := range []string{"virtual-kubelet.io/priority", "virtual-kubelet.io/container-sku"} {
		if pod.Annotations[name] != "" {
			at = "metadata.annotations[" + name + "]"
			break
		}
	}
	switch {
	case len(out.SubnetIDs) > 0 || out.IPAddress != nil:
		return errdefs.InvalidInputf("%s: a group of the priority Spot has no network, and the groups of this node have one", at)
	case *out.SKU != aci.ContainerGroupSKUStandard:
		return errdefs.InvalidInputf("%s: a group of the priority Spot has the SKU Standard, and no other", at)
	case len(m.config.Zones) > 0:
		return errdefs.InvalidInputf("%s: a group of the priority Spot is in no zone, and the configuration of this node names zones", at)
	}
	return nil
}
