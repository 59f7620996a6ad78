// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// maxParts is the maximum number of containers, init containers and volumes of a group. maxTagValue is the
// maximum number of characters of a tag.
const (
	maxParts    = 20
	maxTagValue = 128
)

// mapping makes groups of pods.
type mapping struct {
	config Config
	owner  identity.Owner
}

// check refuses a pod for every reason of group that is visible in the pod alone.
func (m mapping) check(pod *corev1.Pod) error {
	in, err := service.Unread(m.owner, pod)
	if err == nil {
		_, err = m.group(resolved{in})
	}
	return err
}

// group returns the request for the group of a pod. The same pod always gives the same request, with the same
// token. Errors are of the kind invalid-input, with the field that a group cannot have.
func (m mapping) group(r resolved) (createRequest, error) {
	pod, spec := r.Pod, field.NewPath("spec")
	name := m.owner.Name(identity.Of(pod))
	out := createRequest{
		ClientToken: name, ContainerGroupName: name, Tag: tags(m.owner.Tags(identity.Of(pod))),
		SecurityGroupID: m.config.SecurityGroupID, VSwitchID: strings.Join(m.config.VSwitchIDs, ","), ResourceGroupID: m.config.ResourceGroupID,
		RestartPolicy:                 cmp.Or(string(pod.Spec.RestartPolicy), string(corev1.RestartPolicyAlways)),
		HostName:                      pod.Spec.Hostname,
		TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
		ShareProcessNamespace:         pod.Spec.ShareProcessNamespace != nil && *pod.Spec.ShareProcessNamespace,
	}
	if pod.Spec.ActiveDeadlineSeconds != nil {
		out.ActiveDeadlineSeconds = *pod.Spec.ActiveDeadlineSeconds
	}
	var err error
	if out.ImageRegistryCredential, err = r.logins(); err != nil {
		return out, err
	}
	bought, err := sizeOf(pod, m.config.DefaultResources)
	if err != nil {
		return out, err
	}
	out.CPU, out.Memory = cpus(bought), gibs(bought)
	if err := cannot(pod, spec); err != nil {
		return out, err
	}
	err = service.Containers(pod, func(spec *corev1.Container, isInit bool, at *field.Path) error {
		c, err := r.container(spec, isInit, at)
		if isInit {
			out.InitContainer = append(out.InitContainer, c)
			return err
		}
		if err == nil {
			c.LivenessProbe, c.ReadinessProbe, err = m.config.probes(pod, spec, at)
		}
		out.Container = append(out.Container, c)
		return err
	})
	if err != nil {
		return out, err
	}
	for i := range pod.Spec.Volumes {
		v, err := r.volume(&pod.Spec.Volumes[i], spec.Child("volumes").Index(i))
		if err != nil {
			return out, err
		}
		out.Volume = append(out.Volume, v)
	}
	if err := r.checkFiles(spec.Child("volumes")); err != nil {
		return out, err
	}
	out.network(pod)
	if err := out.sysctls(pod, spec.Child("securityContext", "sysctls")); err != nil {
		return out, err
	}
	out.EphemeralStorage = extraStorage(pod)
	out.ACRRegistryInfo = m.config.registries(pod)
	if err := m.config.annotate(pod, &out); err != nil {
		return out, err
	}
	return out, m.config.instanceTypes(pod, &out)
}

// registries returns the instances of ACR with images of a pod. ECI pulls from them with a role and without a
// login. An instance without domains belongs to all pods.
func (c Config) registries(pod *corev1.Pod) (out []acrRegistry) {
	hosts := map[string]bool{}
	_ = service.Containers(pod, func(k *corev1.Container, _ bool, _ *field.Path) error { // the callback returns no error
		host, _, _ := strings.Cut(k.Image, "/")
		hosts[host] = true
		return nil
	})
	for _, i := range c.ACRInstances {
		if len(i.Domains) == 0 || slices.ContainsFunc(i.Domains, func(name string) bool { return hosts[name] }) {
			out = append(out, acrRegistry{InstanceID: i.ID, RegionID: cmp.Or(i.Region, c.Region), Domain: i.Domains, ArnService: i.ServiceRole, ArnUser: i.UserRole})
		}
	}
	return out
}

// tags returns tags in the order of their keys.
func tags(of map[string]string) (out []tag) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		out = append(out, tag{key, of[key]})
	}
	return out
}

// cannot refuses pod fields that a group lacks and that no feature covers.
func cannot(pod *corev1.Pod, spec *field.Path) error {
	s := &pod.Spec
	for _, is := range []struct {
		asks bool
		at   *field.Path
		why  string
	}{
		{len(pod.Name) > maxTagValue, field.NewPath("metadata", "name"), "a tag of ECI, by which the group is found, has at most 128 characters"},
		{len(s.InitContainers) > maxParts, spec.Child("initContainers"), "a group of ECI has at most 20 init containers"},
		{len(s.Containers) > maxParts, spec.Child("containers"), "a group of ECI has at most 20 containers"},
		{len(s.Volumes) > maxParts, spec.Child("volumes"), "a group of ECI has at most 20 volumes"},
		{s.Subdomain != "", spec.Child("subdomain"), "a group of ECI has a name and no domain"},
		{s.SetHostnameAsFQDN != nil && *s.SetHostnameAsFQDN, spec.Child("setHostnameAsFQDN"), "a group of ECI has a name and no domain"},
		{s.HostnameOverride != nil, spec.Child("hostnameOverride"), "use hostname"},
		{len(s.Overhead) > 0, spec.Child("overhead"), "sizes of ECI have no part for it"},
		{s.OS != nil && s.OS.Name != corev1.Linux, spec.Child("os"), "groups of this node run Linux"},
	} {
		if is.asks {
			return errdefs.InvalidInputf("%s: %s", is.at, is.why)
		}
	}
	return nil
}

// network sets the DNS and the host names of a group.
func (out *createRequest) network(pod *corev1.Pod) {
	out.DNSPolicy = string(corev1.DNSDefault) // the DNS of the VPC: services of the cluster have no names there
	if pod.Spec.DNSPolicy == corev1.DNSNone {
		out.DNSPolicy = string(corev1.DNSNone)
	}
	if d := pod.Spec.DNSConfig; d != nil {
		out.DNSConfig.NameServer, out.DNSConfig.Search = d.Nameservers, d.Searches
		for _, o := range d.Options {
			h := header{Name: o.Name}
			if o.Value != nil {
				h.Value = *o.Value
			}
			out.DNSConfig.Option = append(out.DNSConfig.Option, h)
		}
	}
	for _, a := range pod.Spec.HostAliases {
		out.HostAliase = append(out.HostAliase, hostAlias{a.IP, a.Hostnames})
	}
}

// ECI accepts two sysctls as safe. Another field accepts unsafeSysctls without refusedSysctls.
var (
	safeSysctls    = []string{"net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"}
	unsafeSysctls  = []string{"kernel.shm*", "kernel.msg*", "kernel.sem", "fs.mqueue.*", "net.*", "vm.min_free_kbytes"}
	refusedSysctls = []string{"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"}
)

// sysctls sets the kernel parameters of the group.
func (out *createRequest) sysctls(pod *corev1.Pod, at *field.Path) error {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	for i, c := range pod.Spec.SecurityContext.Sysctls {
		name := dotted(c.Name)
		switch {
		case slices.Contains(safeSysctls, name):
			out.SecurityContext.Sysctl = append(out.SecurityContext.Sysctl, header{name, c.Value})
		case !slices.Contains(refusedSysctls, name) && slices.ContainsFunc(unsafeSysctls, func(pattern string) bool { return matches(pattern, name) }):
			out.HostSecurityContext.Sysctl = append(out.HostSecurityContext.Sysctl, header{name, c.Value})
		default:
			return errdefs.InvalidInputf("%s: %s: ECI takes %s, but for %s", at.Index(i), c.Name, strings.Join(unsafeSysctls, ", "), strings.Join(refusedSysctls, ", "))
		}
	}
	return nil
}

// dotted returns the name of a sysctl with dots between its parts. Kubernetes also accepts slashes, and then a dot
// belongs to a part of the name.
func dotted(name string) string {
	at := strings.IndexAny(name, "./")
	if at < 0 || name[at] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}

func matches(pattern, name string) bool {
	before, open := strings.CutSuffix(pattern, "*")
	return name == pattern || open && strings.HasPrefix(name, before)
}
