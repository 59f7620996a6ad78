// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"encoding/base64"
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
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonobject"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// object is a part of a request.
type object = jsonobject.Object

const (
	// leastMemory and leastCPU are the minimum of a container: [DEFAULT] minimum_memory and minimum_cpus of Zun.
	leastMemory, leastCPU = 4 * sizing.Mi, 100
	// fileMode is the mode of all files that Zun writes.
	fileMode = 0o644
)

// mapping converts pods to containers.
type mapping struct {
	config Config
	owner  identity.Owner
}

// isCapsule reports whether a pod becomes a capsule.
func isCapsule(pod *corev1.Pod) bool { return len(pod.Spec.Containers) > 1 }

// checkPod refuses a pod that Zun cannot run, for reasons that depend only on the pod.
func (m mapping) checkPod(pod *corev1.Pod) error {
	if err := m.refusePod(pod); err != nil {
		return err
	}
	in, err := service.Unread(m.owner, pod)
	if err == nil {
		_, _, err = m.createRequest(in)
	}
	return err
}

// refusePod refuses settings that no feature covers, and settings that depend on whether the pod is a capsule.
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

// createRequest returns the request for a pod, and its collection. The same pod always gives the same request. Errors are of
// the kind invalid-input.
func (m mapping) createRequest(in *service.Inputs) (collection string, body object, err error) {
	if isCapsule(in.Pod) {
		template, err := m.capsuleTemplate(in)
		return capsules, object{"template": template}, err
	}
	body, err = m.containerRequest(in)
	return containers, body, err
}

func (m mapping) containerRequest(in *service.Inputs) (object, error) {
	spec, at := &in.Pod.Spec.Containers[0], field.NewPath("spec", "containers").Index(0)
	c := in.Containers[spec.Name]
	cpu, memory, err := m.sizeOf(spec, at)
	if err != nil {
		return nil, err
	}
	mounts, err := m.mapMounts(in, c, at.Child("volumeMounts"))
	if err != nil {
		return nil, err
	}
	var networks []object
	for _, name := range m.config.Networks {
		networks = append(networks, object{"network": name})
	}
	entrypoint, command := commandWords(c.Command, c.Args)
	out := object{
		"name": in.Name, "image": c.Image, "entrypoint": entrypoint, "command": command, "workdir": c.WorkingDir, "environment": environmentOf(c),
		"labels": in.Tags, "cpu": cpu, "interactive": &c.Stdin, "tty": &c.TTY, "hostname": hostnameOf(in.Pod),
		// Docker must not restart containers: while such a container waits for its restart, it cannot be stopped or deleted. Zun also does not report
		// the number of restarts.
		"restart_policy":    object{"Name": "no"},
		"availability_zone": m.config.AvailabilityZone, "security_groups": m.config.SecurityGroups, "nets": networks, "mounts": mounts,
	}
	if memory > 0 {
		out["memory"] = strconv.FormatInt(memory, 10)
	}
	return out.WithoutEmpty(), nil
}

// commandWords returns entrypoint and command for Zun. Zun fills empty values from the image, while Kubernetes ignores the arguments of the image if
// the pod has a command.
func commandWords(command, args []string) (entrypoint, rest []string) {
	switch {
	case len(command) == 0 || len(args) > 0:
		return command, args
	case len(command) > 1:
		return command[:1], command[1:]
	}
	return []string{"/bin/sh", "-c", `exec "$1"`, "sh"}, command // not every shell accepts a word for $0
}

func environmentOf(c *corev1.Container) map[string]string {
	out := map[string]string{}
	for _, e := range c.Env {
		out[e.Name] = e.Value
	}
	return out
}

// hostnameOf returns the hostname of the pod, truncated as by a kubelet.
func hostnameOf(pod *corev1.Pod) string {
	name := pod.Spec.Hostname
	if name == "" {
		name = pod.Name
	}
	return strings.TrimRight(name[:min(len(name), 63)], "-.")
}

// sizeOf returns the resources of a container: its limits, or its requests where it has no limit. The units are CPUs and
// MiB. 0 means none.
func (m mapping) sizeOf(c *corev1.Container, at *field.Path) (cpu float64, memory int64, err error) {
	asked := sizing.Asked(m.config.DefaultResources, c.Resources)
	for name := range asked {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
			return 0, 0, errdefs.InvalidInputf("%s: %s: containers of Zun have cpu, memory and ephemeral-storage", at.Child("resources"), name)
		}
	}
	size := sizing.Of(asked)
	if size.MilliCPU > 0 {
		cpu = float64(max(size.MilliCPU, leastCPU)) / 1000
	}
	if size.Memory > 0 {
		memory = (max(size.Memory, leastMemory) + sizing.Mi - 1) / sizing.Mi
	}
	return cpu, memory, nil
}

// mapMounts maps the mounts of a container: each file is a separate mount, and an emptyDir is a Cinder volume.
func (m mapping) mapMounts(in *service.Inputs, c *corev1.Container, at *field.Path) (out []object, err error) {
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

func (m mapping) mapMount(in *service.Inputs, v *corev1.Volume, vm corev1.VolumeMount, at, of *field.Path) (out []object, err error) {
	switch {
	case vm.SubPathExpr != "":
		return nil, errdefs.InvalidInputf("%s: Zun has no field for it", at.Child("subPathExpr"))
	case v.EmptyDir != nil && m.config.EmptyDirGiB == 0:
		return nil, errdefs.InvalidInputf("%s: Zun has no empty directories: set emptyDirGiB of the configuration, to have Cinder volumes", of.Child("emptyDir"))
	case v.EmptyDir != nil && (v.EmptyDir.Medium != corev1.StorageMediumDefault || vm.SubPath != "" || v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Value() > int64(m.config.EmptyDirGiB)*sizing.Gi):
		return nil, errdefs.InvalidInputf("%s: it is a Cinder volume of %d GiB: no medium, no subPath, and no larger sizeLimit", of.Child("emptyDir"), m.config.EmptyDirGiB)
	case v.EmptyDir != nil:
		return []object{{"type": "volume", "size": strconv.Itoa(m.config.EmptyDirGiB), "destination": vm.MountPath}}, nil
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
		out = append(out, object{"type": "bind", "source": base64.StdEncoding.EncodeToString(f.Data), "destination": to})
	}
	return out, nil
}

// capsuleTemplate returns the capsule of a pod.
func (m mapping) capsuleTemplate(in *service.Inputs) (object, error) {
	var members []object
	for i := range in.Pod.Spec.Containers {
		spec, at := &in.Pod.Spec.Containers[i], field.NewPath("spec", "containers").Index(i)
		c := in.Containers[spec.Name]
		cpu, memory, err := m.sizeOf(spec, at)
		if err != nil {
			return nil, err
		}
		requests := object{"cpu": cpu, "memory": memory}.WithoutEmpty() // numbers, because Zun adds them up and fails with strings
		members = append(members, object{
			"image": c.Image, "args": c.Args, "workDir": c.WorkingDir, "env": environmentOf(c), "stdin": c.Stdin, "tty": c.TTY,
			"resources": object{"requests": requests}.WithoutEmpty(),
		}.WithoutEmpty())
	}
	return object{
		"kind": "capsule", "capsuleVersion": "beta", "metadata": object{"name": in.Name, "labels": in.Tags}, "availabilityZone": m.config.AvailabilityZone,
		"spec": object{"restartPolicy": corev1.RestartPolicyAlways, "containers": members},
	}.WithoutEmpty(), nil
}
