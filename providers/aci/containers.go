// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
)

// container maps one container of the spec; the one that is resolved has its environment.
func (m mapping) container(r resolved, spec *corev1.Container, at *field.Path) (*aci.Container, error) {
	c, err := r.resolved(spec, at)
	if err != nil {
		return nil, err
	}
	p := &aci.ContainerProperties{Image: new(imageOf(c.Image)), Command: pointers(r.command(c))}
	if p.EnvironmentVariables, err = r.environment(c, at.Child("env")); err != nil {
		return nil, err
	}
	if p.VolumeMounts, err = mounts(c, at.Child("volumeMounts")); err != nil {
		return nil, err
	}
	if p.SecurityContext, err = r.security(c, at.Child("securityContext")); err != nil {
		return nil, err
	}
	if p.Resources, err = m.resources(c, at.Child("resources")); err != nil {
		return nil, err
	}
	for i, port := range c.Ports {
		if port.Protocol != "" && port.Protocol != corev1.ProtocolTCP && port.Protocol != corev1.ProtocolUDP {
			return nil, errdefs.InvalidInputf("%s: %s: a group of ACI has ports of TCP and UDP", at.Child("ports").Index(i).Child("protocol"), port.Protocol)
		}
		protocol := aci.ContainerNetworkProtocolTCP
		if port.Protocol == corev1.ProtocolUDP {
			protocol = aci.ContainerNetworkProtocolUDP
		}
		p.Ports = append(p.Ports, &aci.ContainerPort{Port: &port.ContainerPort, Protocol: &protocol})
	}
	if c.StartupProbe != nil {
		return nil, errdefs.InvalidInputf("%s: a group of ACI has no field for it: use initialDelaySeconds of the others", at.Child("startupProbe"))
	}
	if p.LivenessProbe, err = probe(c.LivenessProbe, c, at.Child("livenessProbe")); err != nil {
		return nil, err
	}
	if p.ReadinessProbe, err = probe(c.ReadinessProbe, c, at.Child("readinessProbe")); err != nil {
		return nil, err
	}
	return &aci.Container{Name: &c.Name, Properties: p}, nil
}

// initContainer maps an init container, which has neither ports nor resources nor probes.
func (r resolved) initContainer(spec *corev1.Container, at *field.Path) (*aci.InitContainerDefinition, error) {
	c, err := r.resolved(spec, at)
	if err != nil {
		return nil, err
	}
	p := &aci.InitContainerPropertiesDefinition{Image: new(imageOf(c.Image)), Command: pointers(r.command(c))}
	if p.EnvironmentVariables, err = r.environment(c, at.Child("env")); err != nil {
		return nil, err
	}
	if p.VolumeMounts, err = mounts(c, at.Child("volumeMounts")); err != nil {
		return nil, err
	}
	if p.SecurityContext, err = r.security(c, at.Child("securityContext")); err != nil {
		return nil, err
	}
	return &aci.InitContainerDefinition{Name: &c.Name, Properties: p}, nil
}

// resolved is a container with its environment. What no container of ACI has is refused.
func (r resolved) resolved(spec *corev1.Container, at *field.Path) (*corev1.Container, error) {
	c := r.containers[spec.Name]
	switch {
	case c == nil:
		return nil, errdefs.InvalidInputf("%s: container %q was not resolved", at, spec.Name)
	case c.WorkingDir != "":
		return nil, errdefs.InvalidInputf("%s: a container of ACI has no field for it: change the directory in the command", at.Child("workingDir"))
	case mentionsAny(spec.Command, r.secretEnv[spec.Name]):
		return nil, errdefs.InvalidInputf("%s: ACI shows commands, and this one names a variable of a Secret: read it in the program", at.Child("command"))
	case mentionsAny(spec.Args, r.secretEnv[spec.Name]):
		return nil, errdefs.InvalidInputf("%s: ACI shows arguments, and one names a variable of a Secret: read it in the program", at.Child("args"))
	case c.ImagePullPolicy == corev1.PullNever:
		return nil, errdefs.InvalidInputf("%s: ACI pulls images", at.Child("imagePullPolicy"))
	}
	return c, nil
}

// command is the one list that ACI has for both. Arguments alone get the command of the image, which is read from its registry.
func (r resolved) command(c *corev1.Container) []string {
	first := c.Command
	if len(first) == 0 && len(c.Args) > 0 {
		first = r.entrypoints[c.Name]
	}
	return slices.Concat(first, c.Args)
}

// initFits refuses an init container that asks for more than the group has: ACI gives it what the containers ask for.
func (m mapping) initFits(r resolved, spec *field.Path) error {
	var has sizing.Size
	for i := range r.pod.Spec.Containers {
		has = has.Add(sizing.Of(m.asks(&r.pod.Spec.Containers[i])))
	}
	for i := range r.pod.Spec.InitContainers {
		c := &r.pod.Spec.InitContainers[i]
		asks := sizing.Of(c.Resources.Requests)
		if asks.MilliCPU > has.MilliCPU || asks.Memory > has.Memory {
			return errdefs.InvalidInputf("%s: an init container of ACI gets what the containers ask for, which is less: let one of them ask for more",
				spec.Child("initContainers").Index(i).Child("resources", "requests"))
		}
	}
	return nil
}

// asks is what a container asks for, or its limits, or what the configuration has for it. A limit of memory counts as asked for: ACI has
// no memory beside what the group asks for, and a program that is made for its limit would be ended.
func (m mapping) asks(c *corev1.Container) corev1.ResourceList {
	out := corev1.ResourceList{corev1.ResourceCPU: m.config.DefaultResources.CPU, corev1.ResourceMemory: m.config.DefaultResources.Memory}
	for name := range out {
		if q, ok := c.Resources.Requests[name]; ok && q.Sign() > 0 {
			out[name] = q
		} else if q, ok := c.Resources.Limits[name]; ok && q.Sign() > 0 {
			out[name] = q
		}
	}
	if q := c.Resources.Limits[corev1.ResourceMemory]; q.Cmp(out[corev1.ResourceMemory]) > 0 {
		out[corev1.ResourceMemory] = q
	}
	return out
}

// variableName is what ACI takes as the name of a variable. Kubernetes takes more.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// environment is that of a container. What comes from a secret goes where ACI shows it to nobody.
func (r resolved) environment(c *corev1.Container, at *field.Path) (out []*aci.EnvironmentVariable, err error) {
	for i := range c.Env {
		e := &c.Env[i]
		v := &aci.EnvironmentVariable{Name: &e.Name}
		switch {
		case !variableName.MatchString(e.Name):
			return nil, errdefs.InvalidInputf("%s: variable %q: ACI has names of letters, digits and _, with no digit first: rename it, or its key in envFrom", at.Index(i), e.Name)
		case e.ValueFrom != nil:
			return nil, errdefs.InvalidInputf("%s: variable %s: ACI has no such source: addresses are not known before the group is there", at.Index(i), e.Name)
		case r.secretEnv[c.Name][e.Name] && e.Value != "":
			v.SecureValue = &e.Value
		default:
			v.Value = &e.Value
		}
		out = append(out, v)
	}
	return out, nil
}

func mounts(c *corev1.Container, at *field.Path) (out []*aci.VolumeMount, err error) {
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		if m.SubPath != "" || m.SubPathExpr != "" {
			return nil, errdefs.InvalidInputf("%s: a mount of ACI is a whole volume", at.Index(i).Child("subPath"))
		}
		if strings.Contains(m.MountPath, ":") {
			return nil, errdefs.InvalidInputf("%s: %s: ACI has no paths with a colon", at.Index(i).Child("mountPath"), m.MountPath)
		}
		v := &aci.VolumeMount{Name: &m.Name, MountPath: &m.MountPath}
		if m.ReadOnly {
			v.ReadOnly = new(true)
		}
		out = append(out, v)
	}
	return out, nil
}

// security is who a container runs as, and what it may. Nil is as the image has it.
func (r resolved) security(c *corev1.Container, at *field.Path) (*aci.SecurityContextDefinition, error) {
	var user, group *int64
	var nonRoot *bool
	if s := r.pod.Spec.SecurityContext; s != nil {
		user, group, nonRoot = s.RunAsUser, s.RunAsGroup, s.RunAsNonRoot
	}
	out := &aci.SecurityContextDefinition{}
	is := false
	if s := c.SecurityContext; s != nil {
		if s.RunAsUser != nil {
			user = s.RunAsUser
		}
		if s.RunAsGroup != nil {
			group = s.RunAsGroup
		}
		if s.RunAsNonRoot != nil {
			nonRoot = s.RunAsNonRoot
		}
		if s.AllowPrivilegeEscalation != nil {
			out.AllowPrivilegeEscalation, is = s.AllowPrivilegeEscalation, true
		}
		if k := s.Capabilities; k != nil && len(k.Add)+len(k.Drop) > 0 {
			out.Capabilities, is = &aci.SecurityContextCapabilitiesDefinition{Add: names(k.Add), Drop: names(k.Drop)}, true
		}
	}
	if profile := r.seccomp[c.Name]; profile != "" {
		out.SeccompProfile, is = &profile, true
	}
	if nonRoot != nil && *nonRoot && (user == nil || *user == 0) { // ACI cannot be asked to look at the user of its image
		return nil, errdefs.InvalidInputf("%s: a container of ACI has no field for it: set runAsUser", at.Child("runAsNonRoot"))
	}
	for _, id := range []struct {
		from *int64
		to   **int32
		name string
	}{{user, &out.RunAsUser, "runAsUser"}, {group, &out.RunAsGroup, "runAsGroup"}} {
		if id.from == nil {
			continue
		}
		if *id.from < 0 || *id.from > math.MaxInt32 {
			return nil, errdefs.InvalidInputf("%s: %d: ACI has IDs of 0 to %d", at.Child(id.name), *id.from, math.MaxInt32)
		}
		*id.to, is = new(int32(*id.from)), true
	}
	if !is {
		return nil, nil
	}
	return out, nil
}

func names(of []corev1.Capability) (out []*string) {
	for _, c := range of {
		out = append(out, new(string(c)))
	}
	return out
}

// storageGiven is the storage of each group, for volumes on disk: https://learn.microsoft.com/en-us/azure/container-instances/container-instances-volume-emptydir
// of 2026-11-28. A group has no field for another size.
const storageGiven = "50G"

// capLimits lowers limits of CPU to what the group asks for, which is all that the group has: ACI refuses larger ones.
func capLimits(containers []*aci.Container) {
	sum := 0.0
	for _, c := range containers {
		sum += *c.Properties.Resources.Requests.CPU
	}
	sum = math.Round(sum*100) / 100
	for _, c := range containers {
		if l := c.Properties.Resources.Limits; l != nil && l.CPU != nil && *l.CPU > sum {
			l.CPU = &sum
		}
	}
}

// declarePortsOnce leaves out ports that another container has declared: ACI refuses them, and they say nothing more.
func declarePortsOnce(containers []*aci.Container) {
	seen := map[string]bool{}
	for _, c := range containers {
		c.Properties.Ports = slices.DeleteFunc(c.Properties.Ports, func(p *aci.ContainerPort) bool {
			name := fmt.Sprint(*p.Port, *p.Protocol)
			was := seen[name]
			seen[name] = true
			return was
		})
	}
}

// largest are the sizes of groups that ACI does not exceed, in CPUs and GB:
// MicrosoftDocs/azure-compute-docs: articles/container-instances/container-instances-resource-and-quota-limits.md, 2025-11-17.
var largest = struct{ standard, confidential, spot [2]float64 }{[2]float64{31, 240}, [2]float64{31, 180}, [2]float64{4, 16}}

// checkSize refuses a group that is larger than any that ACI has, which would wait for ever for a region with room.
func checkSize(g *aci.ContainerGroupPropertiesProperties, spec *field.Path) error {
	most := largest.standard
	switch {
	case *g.Priority == aci.ContainerGroupPrioritySpot:
		most = largest.spot
	case *g.SKU == aci.ContainerGroupSKUConfidential:
		most = largest.confidential
	}
	cpu, memory := 0.0, 0.0
	for _, c := range g.Containers {
		cpu, memory = cpu+*c.Properties.Resources.Requests.CPU, memory+*c.Properties.Resources.Requests.MemoryInGB
	}
	if cpu > most[0]+0.001 || memory > most[1]+0.001 {
		return errdefs.InvalidInputf("%s: the pod needs %.2f CPUs and %.1f GB, and a group of ACI has at most %.0f CPUs and %.0f GB", spec.Child("containers"), cpu, memory, most[0], most[1])
	}
	return nil
}

// resources are requests and limits, rounded up to 10 milli-CPUs and 0.1 GB.
func (m mapping) resources(c *corev1.Container, at *field.Path) (*aci.ResourceRequirements, error) {
	for _, list := range []struct {
		name  string
		names corev1.ResourceList
	}{{"requests", c.Resources.Requests}, {"limits", c.Resources.Limits}} {
		for name := range list.names {
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
				return nil, errdefs.InvalidInputf("%s: a container of ACI has cpu, memory and ephemeral-storage", at.Child(list.name).Key(string(name)))
			}
		}
	}
	asks := m.asks(c)
	cpu, memory := asks[corev1.ResourceCPU], asks[corev1.ResourceMemory]
	out := &aci.ResourceRequirements{Requests: &aci.ResourceRequests{CPU: cpus(cpu), MemoryInGB: gbs(memory)}}
	limits := &aci.ResourceLimits{}
	if q, ok := c.Resources.Limits[corev1.ResourceCPU]; ok && q.Sign() > 0 {
		limits.CPU, out.Limits = cpus(q), limits
	}
	if q, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && q.Sign() > 0 {
		limits.MemoryInGB, out.Limits = gbs(q), limits
	}
	return out, nil
}

// cpus are in units of a hundredth.
func cpus(q resource.Quantity) *float64 { return new(float64((q.MilliValue()+9)/10) / 100) }

// gbs are in units of a tenth.
func gbs(q resource.Quantity) *float64 { return new(float64((q.Value()+1e8-1)/1e8) / 10) }

func mentionsAny(texts []string, names map[string]bool) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return mentions(text, names) })
}

// mentions reports whether a value is made of one of the variables, as $(NAME).
func mentions(value string, names map[string]bool) bool {
	for name, is := range names {
		if is && strings.Contains(value, "$("+name+")") {
			return true
		}
	}
	return false
}
