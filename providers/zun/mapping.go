// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// request is the create of a container.
type request struct {
	Name             string            `json:"name"`
	Image            string            `json:"image"`
	Entrypoint       []string          `json:"entrypoint,omitempty"`
	Command          []string          `json:"command,omitempty"`
	Workdir          string            `json:"workdir,omitempty"`
	Environment      map[string]string `json:"environment,omitempty"`
	Labels           map[string]string `json:"labels"`
	CPU              float64           `json:"cpu,omitempty"`
	Memory           string            `json:"memory,omitempty"`
	RestartPolicy    map[string]string `json:"restart_policy"`
	Interactive      bool              `json:"interactive"`
	TTY              bool              `json:"tty"`
	Hostname         string            `json:"hostname,omitempty"`
	AvailabilityZone string            `json:"availability_zone,omitempty"`
	SecurityGroups   []string          `json:"security_groups,omitempty"`
	Nets             []network         `json:"nets,omitempty"`
	Mounts           []mount           `json:"mounts,omitempty"`
	Registry         string            `json:"registry,omitempty"`
}

type network struct {
	Network string `json:"network"`
}

type mount struct {
	Type        string `json:"type"`
	Source      string `json:"source,omitempty"`
	Size        string `json:"size,omitempty"`
	Destination string `json:"destination"`
}

const (
	// leastMemory and leastCPU are the minimum of a container: [DEFAULT] minimum_memory and minimum_cpus of Zun.
	leastMemory, leastCPU = 4 * sizing.Mi, 100
	// fileMode is the mode of all files that Zun writes.
	fileMode = 0o644
)

// mapping makes containers of pods.
type mapping struct {
	config Config
	owner  identity.Owner
}

// isCapsule reports whether a pod is to be a capsule.
func isCapsule(pod *corev1.Pod) bool { return len(pod.Spec.Containers) > 1 }

// checkPod refuses a pod for everything that Zun cannot do and that is visible in the pod alone.
func (m mapping) checkPod(pod *corev1.Pod) error {
	if err := m.refusePod(pod); err != nil {
		return err
	}
	in, err := service.Unread(m.owner, pod)
	switch {
	case err != nil:
		return err
	case isCapsule(pod):
		_, err = m.capsuleTemplate(in)
	default:
		_, err = m.containerRequest(in)
	}
	return err
}

// refusePod refuses everything that no feature covers, and everything that depends on whether the pod is a capsule.
func (m mapping) refusePod(pod *corev1.Pod) error {
	s, spec, capsule := &pod.Spec, field.NewPath("spec"), isCapsule(pod)
	rows := []refusal{
		{s.Subdomain != "", spec.Child("subdomain"), "a container of Zun has a name and no domain"},
		{s.SetHostnameAsFQDN != nil && *s.SetHostnameAsFQDN, spec.Child("setHostnameAsFQDN"), "a container of Zun has a name and no domain"},
		{s.HostnameOverride != nil, spec.Child("hostnameOverride"), "use hostname"},
		{s.OS != nil && s.OS.Name != corev1.Linux, spec.Child("os"), "containers of Zun run Linux"},
		{s.SecurityContext != nil && (len(s.SecurityContext.SupplementalGroups) > 0 || s.SecurityContext.SupplementalGroupsPolicy != nil), spec.Child("securityContext", "supplementalGroups"), "Zun has no field for it"},
		{capsule && !m.config.Capsules, spec.Child("containers"), "a container of Zun is one; pods of several are capsules, which current clouds cannot run: see capsules of the configuration"},
		{capsule && s.RestartPolicy != corev1.RestartPolicyAlways && s.RestartPolicy != "", spec.Child("restartPolicy"), "Zun never tells that a container of a capsule has ended, so a pod that ends would run for ever: use a pod of one container"},
		{capsule && len(s.ImagePullSecrets) > 0, spec.Child("imagePullSecrets"), "a capsule has no credentials"},
	}
	for i := range s.Containers {
		c, at := &s.Containers[i], spec.Child("containers").Index(i)
		rows = append(rows,
			refusal{strings.Contains(c.Image, "@"), at.Child("image"), "Zun drops the digest of an image, and takes the tag latest: name a tag"},
			refusal{c.ImagePullPolicy == corev1.PullNever, at.Child("imagePullPolicy"), "Zun pulls images: users may not say when"},
			refusal{c.StdinOnce, at.Child("stdinOnce"), "Zun does not end the input of a container"},
			refusal{capsule && len(c.Command) > 0, at.Child("command"), "a capsule runs the entrypoint of the image: use args"},
			refusal{capsule && len(c.VolumeMounts) > 0, at.Child("volumeMounts"), "a capsule has no files"},
			refusal{capsule && (c.LivenessProbe != nil || c.ReadinessProbe != nil || c.StartupProbe != nil), at.Child("livenessProbe"), "a capsule has no probes"})
	}
	for _, is := range rows {
		if is.asks {
			return errdefs.InvalidInputf("%s: %s", is.at, is.why)
		}
	}
	return storage.Check(pod, *resource.NewQuantity(diskGiven, resource.BinarySI), "Zun")
}

// refusal is a request of a pod that Zun cannot fulfil.
type refusal struct {
	asks bool
	at   *field.Path
	why  string
}

// containerRequest returns the request for the container of a pod. The same pod always gives the same request. Errors
// are of the kind invalid-input.
func (m mapping) containerRequest(in *service.Inputs) (out request, err error) {
	spec, at := &in.Pod.Spec.Containers[0], field.NewPath("spec", "containers").Index(0)
	c := in.Containers[spec.Name]
	out = request{
		Name: in.Name, Image: c.Image, Workdir: c.WorkingDir, Labels: in.Tags, Interactive: c.Stdin, TTY: c.TTY, Hostname: hostnameOf(in.Pod),
		// Docker must not restart containers: while such a container waits for its restart, its owner can
		// neither stop nor delete it. And Zun does not report the number of restarts.
		RestartPolicy:    map[string]string{"Name": "no"},
		AvailabilityZone: m.config.AvailabilityZone, SecurityGroups: m.config.SecurityGroups, Environment: environmentOf(c),
	}
	out.Entrypoint, out.Command = commandWords(c.Command, c.Args)
	for _, name := range m.config.Networks {
		out.Nets = append(out.Nets, network{name})
	}
	cpu, memory, err := m.sizeOf(spec, at)
	if err != nil {
		return out, err
	}
	if cpu > 0 {
		out.CPU = float64(cpu) / 1000
	}
	if memory > 0 {
		out.Memory = strconv.FormatInt(memory/sizing.Mi, 10)
	}
	out.Mounts, err = m.mapMounts(in, c, at.Child("volumeMounts"))
	return out, err
}

// commandWords returns entrypoint and command for Zun. Zun fills an empty one from the image, while Kubernetes takes no
// arguments of the image for a command of the pod.
func commandWords(command, args []string) (entrypoint, rest []string) {
	switch {
	case len(command) == 0 || len(args) > 0:
		return command, args
	case len(command) > 1:
		return command[:1], command[1:]
	}
	return []string{"/bin/sh", "-c", `exec "$1"`, "sh"}, command // not every shell takes a word for $0
}

func environmentOf(c *corev1.Container) map[string]string {
	out := map[string]string{}
	for _, e := range c.Env {
		out[e.Name] = e.Value
	}
	return out
}

// hostnameOf returns the hostname of the pod, cut as a kubelet does.
func hostnameOf(pod *corev1.Pod) string {
	name := pod.Spec.Hostname
	if name == "" {
		name = pod.Name
	}
	return strings.TrimRight(name[:min(len(name), 63)], "-.")
}

// sizeOf returns the resources of a container: its limits, or its requests where it has no limit. The units are
// millicores, and bytes in whole MiB. 0 means none.
func (m mapping) sizeOf(c *corev1.Container, at *field.Path) (cpu, memory int64, err error) {
	asked := corev1.ResourceList{}
	for _, l := range []corev1.ResourceList{m.config.DefaultResources, c.Resources.Requests, c.Resources.Limits} {
		maps.Copy(asked, l)
	}
	for name := range asked {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
			return 0, 0, errdefs.InvalidInputf("%s: %s: containers of Zun have cpu, memory and ephemeral-storage", at.Child("resources"), name)
		}
	}
	size := sizing.Of(asked)
	if size.MilliCPU > 0 {
		cpu = max(size.MilliCPU, leastCPU)
	}
	if size.Memory > 0 {
		memory = (max(size.Memory, leastMemory) + sizing.Mi - 1) / sizing.Mi * sizing.Mi
	}
	return cpu, memory, nil
}

// mapMounts maps the mounts of a container: each file is a separate mount, and an emptyDir is a Cinder volume.
func (m mapping) mapMounts(in *service.Inputs, c *corev1.Container, at *field.Path) (out []mount, err error) {
	volumes := in.Pod.Spec.Volumes
	for i, vm := range c.VolumeMounts {
		n := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == vm.Name })
		if n < 0 {
			continue
		}
		some, err := m.mapMount(in, &volumes[n], vm, at.Index(i), field.NewPath("spec", "volumes").Index(n))
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

func (m mapping) mapMount(in *service.Inputs, v *corev1.Volume, vm corev1.VolumeMount, at, of *field.Path) (out []mount, err error) {
	switch {
	case vm.SubPathExpr != "":
		return nil, errdefs.InvalidInputf("%s: Zun has no field for it", at.Child("subPathExpr"))
	case v.EmptyDir != nil && m.config.EmptyDirGiB == 0:
		return nil, errdefs.InvalidInputf("%s: Zun has no empty directories: set emptyDirGiB of the configuration, to have Cinder volumes", of.Child("emptyDir"))
	case v.EmptyDir != nil && (v.EmptyDir.Medium != corev1.StorageMediumDefault || vm.SubPath != "" || v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Value() > int64(m.config.EmptyDirGiB)*sizing.Gi):
		return nil, errdefs.InvalidInputf("%s: it is a Cinder volume of %d GiB: no medium, no subPath, and no larger sizeLimit", of.Child("emptyDir"), m.config.EmptyDirGiB)
	case v.EmptyDir != nil:
		return []mount{{Type: "volume", Size: strconv.Itoa(m.config.EmptyDirGiB), Destination: vm.MountPath}}, nil
	case !podspec.Written(v):
		return nil, errdefs.InvalidInputf("%s: volume %q: Zun has files and Cinder volumes", of, v.Name)
	}
	for _, f := range in.Files[v.Name] {
		to := path.Join(vm.MountPath, f.Path)
		if vm.SubPath != "" {
			rest, inside := strings.CutPrefix("/"+path.Clean(f.Path), "/"+path.Clean(vm.SubPath))
			if !inside || rest != "" && rest[0] != '/' {
				continue
			}
			to = path.Join(vm.MountPath, rest)
		}
		if f.Mode.Perm() != fileMode {
			return nil, errdefs.InvalidInputf("%s: volume %q: file %s has mode %04o, and Zun writes files with 0644: leave out defaultMode and mode", of, v.Name, f.Path, f.Mode.Perm())
		}
		out = append(out, mount{Type: "bind", Source: base64.StdEncoding.EncodeToString(f.Data), Destination: to})
	}
	return out, nil
}

// template is a capsule.
type template struct {
	Kind             string      `json:"kind"`
	CapsuleVersion   string      `json:"capsuleVersion"`
	Metadata         metadata    `json:"metadata"`
	Spec             capsuleSpec `json:"spec"`
	AvailabilityZone string      `json:"availabilityZone,omitempty"`
}

type metadata struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

type capsuleSpec struct {
	RestartPolicy string   `json:"restartPolicy"`
	Containers    []member `json:"containers"`
}

// member is a container of a capsule.
type member struct {
	Image     string            `json:"image"`
	Args      []string          `json:"args,omitempty"`
	WorkDir   string            `json:"workDir,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Stdin     bool              `json:"stdin,omitempty"`
	TTY       bool              `json:"tty,omitempty"`
	Resources *resources        `json:"resources,omitempty"`
}

// resources are numbers: Zun adds them up, and fails with texts.
type resources struct {
	Requests struct {
		CPU    float64 `json:"cpu,omitempty"`
		Memory int64   `json:"memory,omitempty"`
	} `json:"requests"`
}

// capsuleTemplate returns the capsule of a pod. The same pod always gives the same capsule. Errors are of the kind
// invalid-input.
func (m mapping) capsuleTemplate(in *service.Inputs) (template, error) {
	out := template{
		Kind: "capsule", CapsuleVersion: "beta", Metadata: metadata{in.Name, in.Tags}, AvailabilityZone: m.config.AvailabilityZone,
		Spec: capsuleSpec{RestartPolicy: string(corev1.RestartPolicyAlways)},
	}
	for i := range in.Pod.Spec.Containers {
		spec, at := &in.Pod.Spec.Containers[i], field.NewPath("spec", "containers").Index(i)
		c := in.Containers[spec.Name]
		cpu, memory, err := m.sizeOf(spec, at)
		if err != nil {
			return out, err
		}
		one := member{Image: c.Image, Args: c.Args, WorkDir: c.WorkingDir, Env: environmentOf(c), Stdin: c.Stdin, TTY: c.TTY}
		if cpu > 0 || memory > 0 {
			one.Resources = &resources{}
			one.Resources.Requests.CPU, one.Resources.Requests.Memory = float64(cpu)/1000, memory/sizing.Mi
		}
		out.Spec.Containers = append(out.Spec.Containers, one)
	}
	return out, nil
}
