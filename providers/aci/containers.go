// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
)

// resolved is a pod with all values from other sources that its group needs.
type resolved struct {
	*service.Inputs
	defaults     Resources                 // of containers without requests
	network      Network                   // of the configuration
	shares       map[string]*corev1.Secret // by volume; the accounts of Azure Files
	entrypoints  map[string][]string       // by container; of the images of containers with arguments, but without a command
	seccomp      map[string]string         // by container; profiles in base64
	workspaceKey string
	kubeconfig   string // of kube-proxy; "" if the group has none
}

// container maps one container of the spec, with the fields that all kinds of containers have.
func (r resolved) container(c *corev1.Container, alike *aci.InitContainerPropertiesDefinition, at *field.Path) (*aci.Container, error) {
	if err := r.network.checkProbes(r.Pod, c, at); err != nil {
		return nil, err
	}
	p := &aci.ContainerProperties{
		Image: alike.Image, Command: alike.Command, EnvironmentVariables: alike.EnvironmentVariables, VolumeMounts: alike.VolumeMounts, SecurityContext: alike.SecurityContext,
	}
	var errs [4]error
	p.Resources, errs[0] = r.resources(c, at)
	p.Ports, errs[1] = ports(c, at.Child("ports"))
	lacks := lacking(c)
	if !lacks.Has(c.LivenessProbe) {
		p.LivenessProbe, errs[2] = probe(c.LivenessProbe, c, at.Child("livenessProbe"))
	}
	if !lacks.Has(c.ReadinessProbe) {
		p.ReadinessProbe, errs[3] = probe(c.ReadinessProbe, c, at.Child("readinessProbe"))
	}
	return &aci.Container{Name: &c.Name, Properties: p}, cmp.Or(errs[:]...)
}

// alike maps the fields that containers and init containers share, and returns the container with its environment.
func (r resolved) alike(spec *corev1.Container, at *field.Path) (*corev1.Container, *aci.InitContainerPropertiesDefinition, error) {
	c, err := r.resolved(spec, at)
	if err != nil {
		return nil, nil, err
	}
	p := &aci.InitContainerPropertiesDefinition{Image: new(imageOf(c.Image)), Command: pointers(r.command(c))}
	var errs [3]error
	p.EnvironmentVariables, errs[0] = r.environment(spec, c, at)
	p.VolumeMounts, errs[1] = mounts(c, at.Child("volumeMounts"))
	p.SecurityContext, errs[2] = r.security(c, at.Child("securityContext"))
	return c, p, cmp.Or(errs[:]...)
}

// ports returns the ports that a container declares.
func ports(c *corev1.Container, at *field.Path) (out []*aci.ContainerPort, err error) {
	for i := range c.Ports {
		port := &c.Ports[i]
		protocol := aci.ContainerNetworkProtocol(cmp.Or(port.Protocol, corev1.ProtocolTCP))
		if !slices.Contains(aci.PossibleContainerNetworkProtocolValues(), protocol) {
			return nil, errdefs.InvalidInputf("%s: %s: a group of ACI has ports of TCP and UDP", at.Index(i).Child("protocol"), port.Protocol)
		}
		out = append(out, &aci.ContainerPort{Port: &port.ContainerPort, Protocol: &protocol})
	}
	return out, nil
}

// resolved returns a container with its environment. It refuses fields that no container of ACI has.
func (r resolved) resolved(spec *corev1.Container, at *field.Path) (*corev1.Container, error) {
	c := r.Containers[spec.Name]
	switch {
	case c == nil:
		return nil, errdefs.InvalidInputf("%s: container %q was not resolved", at, spec.Name)
	case c.WorkingDir != "":
		return nil, errdefs.InvalidInputf("%s: a container of ACI has no field for it: change the directory in the command", at.Child("workingDir"))
	case podspec.SecretWord(spec, c, at) != nil:
		return nil, errdefs.InvalidInputf("%s: ACI shows commands, and this word names a variable of a Secret: read it in the program", podspec.SecretWord(spec, c, at))
	case c.ImagePullPolicy == corev1.PullNever:
		return nil, errdefs.InvalidInputf("%s: ACI pulls images", at.Child("imagePullPolicy"))
	}
	return c, nil
}

// command returns command and arguments as the single list that ACI has. For arguments alone, it puts the entrypoint of the image
// first, as read from the registry.
func (r resolved) command(c *corev1.Container) []string {
	first := c.Command
	if len(first) == 0 && len(c.Args) > 0 {
		first = r.entrypoints[c.Name]
	}
	return slices.Concat(first, c.Args)
}

// initFits refuses an init container that asks for more than the group has. ACI gives an init container the sum
// of the requests of the containers.
func (r resolved) initFits(spec *field.Path) error {
	var has sizing.Size
	for i := range r.Pod.Spec.Containers {
		has = has.Add(sizing.Of(r.asks(&r.Pod.Spec.Containers[i])))
	}
	for i, c := range r.Pod.Spec.InitContainers {
		asks := sizing.Of(c.Resources.Requests)
		if asks.MilliCPU > has.MilliCPU || asks.Memory > has.Memory {
			return errdefs.InvalidInputf("%s: an init container of ACI gets what the containers ask for, which is less: let one of them ask for more",
				spec.Child("initContainers").Index(i).Child("resources", "requests"))
		}
	}
	return nil
}

// asks returns the requests of a container, or its limits, or the configured defaults. A memory limit counts as a request: the group
// has only the requested memory, and a program that uses memory up to its limit would be killed.
func (r resolved) asks(c *corev1.Container) corev1.ResourceList {
	out := corev1.ResourceList{corev1.ResourceCPU: r.defaults.CPU, corev1.ResourceMemory: r.defaults.Memory}
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

// variableName matches the variable names that ACI accepts. Kubernetes accepts more names.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

const variableNameWanted = "ACI has names of letters, digits and _, with no digit first"

// refuseVariables refuses wrong names of variables in the pod itself. Names from the keys of other objects are
// refused when these objects are known.
func refuseVariables(c *corev1.Container, at *field.Path) error {
	for i := range c.Env {
		if name := c.Env[i].Name; !variableName.MatchString(name) {
			return errdefs.InvalidInputf("%s: variable %q: %s: rename it", at.Child("env").Index(i), name, variableNameWanted)
		}
	}
	for i := range c.EnvFrom {
		if prefix := c.EnvFrom[i].Prefix; prefix != "" && !variableName.MatchString(prefix) {
			return errdefs.InvalidInputf("%s: %q: %s: change it", at.Child("envFrom").Index(i).Child("prefix"), prefix, variableNameWanted)
		}
	}
	return nil
}

// environment returns the environment of a container. A value from a secret goes into a field that ACI does not show. A variable
// without a value is left out, because ACI does not accept it.
func (r resolved) environment(spec, c *corev1.Container, at *field.Path) (out []*aci.EnvironmentVariable, err error) {
	secrets := podspec.SecretVariables(spec, c)
	for i := range c.Env {
		e := &c.Env[i]
		v := &aci.EnvironmentVariable{Name: &e.Name}
		from := at.Child("envFrom")
		if n := slices.IndexFunc(spec.Env, func(s corev1.EnvVar) bool { return s.Name == e.Name }); n >= 0 {
			from = at.Child("env").Index(n)
		}
		switch {
		case !variableName.MatchString(e.Name):
			return nil, errdefs.InvalidInputf("%s: variable %q: %s: rename it, or its key", from, e.Name, variableNameWanted)
		case e.ValueFrom != nil:
			return nil, errdefs.InvalidInputf("%s: variable %s: ACI has no such source: addresses are not known before the group is there", from, e.Name)
		case e.Value == "":
			continue
		case secrets[e.Name]:
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

// security returns the user and the rights of a container. Nil means the settings of the image.
func (r resolved) security(c *corev1.Container, at *field.Path) (*aci.SecurityContextDefinition, error) {
	own, as := value(c.SecurityContext), podspec.RunAsOf(r.Pod, c)
	out := aci.SecurityContextDefinition{AllowPrivilegeEscalation: own.AllowPrivilegeEscalation}
	if k := own.Capabilities; k != nil && len(k.Add)+len(k.Drop) > 0 {
		out.Capabilities = &aci.SecurityContextCapabilitiesDefinition{Add: names(k.Add), Drop: names(k.Drop)}
	}
	if profile := r.seccomp[c.Name]; profile != "" {
		out.SeccompProfile = &profile
	}
	if as.MayBeRoot() { // ACI cannot check the user of its image
		return nil, errdefs.InvalidInputf("%s: a container of ACI has no field for it: set runAsUser", at.Child("runAsNonRoot"))
	}
	for _, id := range []struct {
		from *int64
		to   **int32
		name string
	}{{as.User, &out.RunAsUser, "runAsUser"}, {as.Group, &out.RunAsGroup, "runAsGroup"}} {
		if id.from == nil {
			continue
		}
		if *id.from < 0 || *id.from > math.MaxInt32 {
			return nil, errdefs.InvalidInputf("%s: %d: ACI has IDs of 0 to %d", at.Child(id.name), *id.from, math.MaxInt32)
		}
		*id.to = new(int32(*id.from))
	}
	if out == (aci.SecurityContextDefinition{}) {
		return nil, nil
	}
	return &out, nil
}

func names(of []corev1.Capability) (out []*string) {
	for _, c := range of {
		out = append(out, new(string(c)))
	}
	return out
}

// capLimits lowers CPU limits to the sum of the requests of the group. The group has no more CPU, and ACI
// refuses larger limits.
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

// declarePortsOnce leaves out ports that another container has declared. ACI refuses such a port, and it has no
// further settings.
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

// largest are the largest sizes of groups, in CPUs and GB: MicrosoftDocs/azure-compute-docs:
// articles/container-instances/container-instances-resource-and-quota-limits.md, 2025-11-17.
var largest = struct{ standard, confidential, spot [2]float64 }{[2]float64{31, 240}, [2]float64{31, 180}, [2]float64{4, 16}}

// checkSize refuses a group that is larger than the largest size of ACI. Such a group would wait forever for a
// region with room.
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

// resources returns requests and limits, rounded up to 10 milli-CPUs and 0.1 GB.
func (r resolved) resources(c *corev1.Container, at *field.Path) (*aci.ResourceRequirements, error) {
	err := podspec.CheckResources(c, at, "a container of ACI has cpu, memory and ephemeral-storage",
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage)
	if err != nil {
		return nil, err
	}
	asks := r.asks(c)
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

// cpus returns CPUs, rounded up to hundredths.
func cpus(q resource.Quantity) *float64 { return new(float64((q.MilliValue()+9)/10) / 100) }

// gbs returns GB, rounded up to tenths.
func gbs(q resource.Quantity) *float64 { return new(float64((q.Value()+1e8-1)/1e8) / 10) }

// probe maps a probe that ACI runs. Nil stays nil.
func probe(p *corev1.Probe, c *corev1.Container, at *field.Path) (*aci.ContainerProbe, error) {
	if p == nil {
		return nil, nil
	}
	out := &aci.ContainerProbe{
		InitialDelaySeconds: some(p.InitialDelaySeconds), PeriodSeconds: some(p.PeriodSeconds), TimeoutSeconds: some(p.TimeoutSeconds),
		SuccessThreshold: some(p.SuccessThreshold), FailureThreshold: some(p.FailureThreshold),
	}
	if p.Exec != nil {
		out.Exec = &aci.ContainerExec{Command: pointers(p.Exec.Command)}
		return out, nil
	}
	g := p.HTTPGet
	port, err := podspec.Port(g.Port, c, at.Child("httpGet", "port"))
	if err != nil {
		return nil, err
	}
	scheme := aci.SchemeHTTP
	if g.Scheme == corev1.URISchemeHTTPS {
		scheme = aci.SchemeHTTPS
	}
	out.HTTPGet = &aci.ContainerHTTPGet{Path: &g.Path, Port: &port, Scheme: &scheme}
	for _, h := range g.HTTPHeaders {
		out.HTTPGet.HTTPHeaders = append(out.HTTPGet.HTTPHeaders, &aci.HTTPHeader{Name: &h.Name, Value: &h.Value})
	}
	return out, nil
}

func some(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

// profile returns a seccomp profile for ACI, or "" if there is none.
func (s Seccomp) profile(p *corev1.SeccompProfile, at *field.Path) (string, error) {
	var file string
	switch {
	case p == nil || p.Type == corev1.SeccompProfileTypeUnconfined:
		return "", nil
	case p.Type == corev1.SeccompProfileTypeRuntimeDefault:
		if file = s.RuntimeDefault; file == "" {
			return "", errdefs.InvalidInputf("%s: this node has no file for it: name seccomp.runtimeDefault in its configuration", at.Child("type"))
		}
	case p.Type == corev1.SeccompProfileTypeLocalhost && p.LocalhostProfile != nil && filepath.IsLocal(*p.LocalhostProfile):
		if s.Directory == "" {
			return "", errdefs.InvalidInputf("%s: this node has no profiles: name seccomp.directory in its configuration", at.Child("localhostProfile"))
		}
		file = filepath.Join(s.Directory, *p.LocalhostProfile)
	default:
		return "", errdefs.InvalidInputf("%s: %q: want RuntimeDefault, Unconfined, or Localhost with a path in the directory of this node", at.Child("type"), p.Type)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", errdefs.InvalidInputf("%s: the profile cannot be read: %v", at, err)
	}
	if !json.Valid(data) {
		return "", errdefs.InvalidInputf("%s: %s is no JSON", at, file)
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

// profileOf returns the profile of a container, or else the profile of its pod.
func (s Seccomp) profileOf(pod *corev1.Pod, c *corev1.Container, at *field.Path) (string, error) {
	if c.SecurityContext != nil && c.SecurityContext.SeccompProfile != nil {
		return s.profile(c.SecurityContext.SeccompProfile, at.Child("securityContext", "seccompProfile"))
	}
	if pod.Spec.SecurityContext != nil {
		return s.profile(pod.Spec.SecurityContext.SeccompProfile, field.NewPath("spec", "securityContext", "seccompProfile"))
	}
	return "", nil
}

// pointers returns pointers to texts, as the SDK requires.
func pointers(texts []string) (out []*string) {
	for i := range texts {
		out = append(out, &texts[i])
	}
	return out
}
