// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// Hard limits of ACI: MicrosoftDocs/azure-compute-docs: articles/container-instances/container-instances-resource-and-quota-limits.md, 2025-11-17.
const (
	maxContainers = 60
	maxVolumes    = 20
	maxPorts      = 5 // of an address
)

// mapping makes groups of pods.
type mapping struct {
	config Config
	domain string // of the cluster's DNS
}

// refuse refuses everything that a group has no field for and that no feature covers.
func refuse(pod *corev1.Pod) error {
	s, spec := &pod.Spec, field.NewPath("spec")
	for _, is := range []struct {
		asks bool
		at   *field.Path
		why  string
	}{
		{len(s.InitContainers)+len(s.Containers) > maxContainers, spec.Child("containers"), "a group of ACI has at most 60 containers"},
		{len(s.Volumes) > maxVolumes, spec.Child("volumes").Index(maxVolumes), "a group of ACI has at most 20 volumes"},
		{len(s.Overhead) > 0, spec.Child("overhead"), "sizes of ACI have no part for it"},
		{s.OS != nil && s.OS.Name != corev1.Linux, spec.Child("os"), "groups of this node run Linux"},
		{s.ActiveDeadlineSeconds != nil && *s.ActiveDeadlineSeconds <= 0, spec.Child("activeDeadlineSeconds"), "want more than 0"},
	} {
		if is.asks {
			return errdefs.InvalidInputf("%s: %s", is.at, is.why)
		}
	}
	err := service.Containers(pod, func(c *corev1.Container, _ bool, at *field.Path) error { return refuseVariables(c, at) })
	return cmp.Or(err, storage.Check(pod, resource.MustParse(storageGiven), "ACI"))
}

// group returns the group of a pod. The same pod always gives the same group. Errors are of the kind
// invalid-input, with the field that a group cannot have.
func (m mapping) group(r resolved) (*aci.ContainerGroup, error) {
	pod, spec := r.Pod, field.NewPath("spec")
	r.defaults, r.network = m.config.DefaultResources, m.config.Network
	if err := r.initFits(spec); err != nil {
		return nil, err
	}
	policy := aci.ContainerGroupRestartPolicy(cmp.Or(pod.Spec.RestartPolicy, corev1.RestartPolicyAlways))
	out := &aci.ContainerGroupPropertiesProperties{
		OSType: new(aci.OperatingSystemTypesLinux), RestartPolicy: &policy, SKU: new(aci.ContainerGroupSKUStandard),
		Priority: new(aci.ContainerGroupPriority(cmp.Or(m.config.Priority, "Regular"))),
	}
	err := service.Containers(pod, func(c *corev1.Container, init bool, at *field.Path) error {
		full, alike, err := r.alike(c, at)
		switch {
		case err != nil:
		case init: // an init container of ACI has no ports, resources or probes
			out.InitContainers = append(out.InitContainers, &aci.InitContainerDefinition{Name: &c.Name, Properties: alike})
		default:
			var one *aci.Container
			one, err = r.container(full, alike, at)
			out.Containers = append(out.Containers, one)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	capLimits(out.Containers)
	declarePortsOnce(out.Containers)
	for i := range pod.Spec.Volumes {
		v, err := r.volume(&pod.Spec.Volumes[i], spec.Child("volumes").Index(i))
		if err != nil {
			return nil, err
		}
		out.Volumes = append(out.Volumes, v)
	}
	if out.ImageRegistryCredentials, err = registryLogins(r.Inputs, m.config.RegistryIdentities); err != nil {
		return nil, err
	}
	if w := m.config.LogAnalytics; w.WorkspaceID != "" {
		out.Diagnostics = &aci.ContainerGroupDiagnostics{LogAnalytics: &aci.LogAnalytics{
			WorkspaceID: &w.WorkspaceID, WorkspaceKey: &r.workspaceKey, LogType: new(aci.LogAnalyticsLogTypeContainerInstanceLogs),
		}}
	}
	if err := m.network(pod, out, spec); err != nil {
		return nil, err
	}
	if r.kubeconfig != "" {
		out.Extensions = []*aci.DeploymentExtensionSpec{m.config.Network.KubeProxy.extension(r.kubeconfig)}
	}
	if err := annotate(out, pod, m.config.Annotations); err != nil {
		return nil, err
	}
	if err := m.spot(pod, out); err != nil {
		return nil, err
	}
	if err := checkSize(out, spec); err != nil {
		return nil, err
	}
	group := &aci.ContainerGroup{Location: &m.config.Region, Tags: map[string]*string{}, Properties: out, Zones: pointers(m.config.Zones)}
	if group.Identity, err = identityOf(m.config, pod, out.ImageRegistryCredentials); err != nil {
		return nil, err
	}
	for key, value := range r.Tags {
		group.Tags[key] = &value
	}
	return group, nil
}

// network sets the addresses, ports and DNS of a group.
func (m mapping) network(pod *corev1.Pod, out *aci.ContainerGroupPropertiesProperties, spec *field.Path) error {
	n := m.config.Network
	if id := n.id(); id != "" {
		out.SubnetIDs = []*aci.ContainerGroupSubnetID{{ID: &id}}
	}
	if n.isPublic() {
		var ports []*aci.Port
		for _, c := range out.Containers { // the ports of the containers differ
			for _, p := range c.Properties.Ports {
				ports = append(ports, &aci.Port{Port: p.Port, Protocol: new(aci.ContainerGroupNetworkProtocol(*p.Protocol))})
			}
		}
		if len(ports) > maxPorts {
			return errdefs.InvalidInputf("%s: the containers declare %d ports, and an address of ACI has at most %d: declare those that are reached from outside",
				spec.Child("containers"), len(ports), maxPorts)
		}
		if len(ports) > 0 {
			out.IPAddress = &aci.IPAddress{Type: new(aci.ContainerGroupIPAddressTypePublic), Ports: ports}
		}
	}
	servers, searches, options := m.dns(pod)
	if pod.Spec.DNSConfig != nil && len(servers) == 0 {
		return errdefs.InvalidInputf("%s: ACI takes search domains and options with name servers only", spec.Child("dnsConfig"))
	}
	if len(servers) > 0 && n.Subnet != "" {
		out.DNSConfig = &aci.DNSConfiguration{NameServers: pointers(servers)}
		if len(searches) > 0 {
			out.DNSConfig.SearchDomains = new(strings.Join(searches, " "))
		}
		if len(options) > 0 {
			out.DNSConfig.Options = new(strings.Join(options, " "))
		}
	}
	return nil
}

// dns returns how a pod resolves names. Without name servers the pod uses those of the virtual network.
func (m mapping) dns(pod *corev1.Pod) (servers, searches, options []string) {
	if policy := cmp.Or(pod.Spec.DNSPolicy, corev1.DNSClusterFirst); policy == corev1.DNSClusterFirst && m.config.Network.ClusterDNS != "" {
		domain := cmp.Or(m.domain, "cluster.local")
		servers = []string{m.config.Network.ClusterDNS}
		searches = []string{pod.Namespace + ".svc." + domain, "svc." + domain, domain}
		options = []string{"ndots:5"}
	}
	if d := pod.Spec.DNSConfig; d != nil {
		servers, searches = append(servers, d.Nameservers...), append(searches, d.Searches...)
		options = slices.DeleteFunc(options, func(had string) bool {
			name, _, _ := strings.Cut(had, ":")
			return slices.ContainsFunc(d.Options, func(o corev1.PodDNSConfigOption) bool { return o.Name == name })
		})
		options = append(options, podspec.DNSOptions(d)...)
	}
	return servers, searches, options
}

// spot refuses everything that a group of the priority Spot cannot have. The configuration of a node may set
// this priority for all its pods.
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
