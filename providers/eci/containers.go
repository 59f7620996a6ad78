// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// container maps one container of the spec. The environment comes from the resolved container.
func (r resolved) container(spec *corev1.Container, isInit bool, at *field.Path) (out container, err error) {
	c := r.Containers[spec.Name]
	if c == nil {
		return out, errdefs.InvalidInputf("%s: container %q was not resolved", at, spec.Name)
	}
	asked := asks(spec)
	out = container{
		Name: c.Name, Image: c.Image, ImagePullPolicy: string(c.ImagePullPolicy), WorkingDir: c.WorkingDir, Command: c.Command, Arg: c.Args,
		CPU: cpus(asked), Memory: gibs(asked), GPU: gpusOf(spec), TerminationMessagePath: c.TerminationMessagePath,
	}
	if err := out.moveArgs(at); err != nil {
		return out, err
	}
	if out.EnvironmentVar, err = environment(c, at.Child("env")); err != nil {
		return out, err
	}
	if from := podspec.SecretSource(spec, at); from != nil {
		if isInit {
			return out, errdefs.InvalidInputf("%s: ECI shows the environment of init containers to everybody who may read groups: mount the secret as a file", from)
		}
		out.EnvironmentVarHide = true
		if in := podspec.SecretWord(spec, c, at); in != nil {
			return out, errdefs.InvalidInputf("%s: it names a variable that comes from a Secret, and ECI shows it to everybody who may read groups: let a shell in the container expand it", in)
		}
	}
	if out.VolumeMount, err = r.mounts(c, at.Child("volumeMounts")); err != nil {
		return out, err
	}
	for i, p := range c.Ports {
		if p.Protocol != "" && p.Protocol != corev1.ProtocolTCP && p.Protocol != corev1.ProtocolUDP {
			return out, errdefs.InvalidInputf("%s: %s: a group of ECI has ports of TCP and UDP", at.Child("ports").Index(i).Child("protocol"), p.Protocol)
		}
		out.Port = append(out.Port, port{int64(p.ContainerPort), strings.ToUpper(string(cmp.Or(p.Protocol, corev1.ProtocolTCP)))})
	}
	if err := r.security(&out, c, isInit, at.Child("securityContext")); err != nil {
		return out, err
	}
	if isInit {
		return out, nil // init containers have neither probes nor hooks
	}
	return out, out.hooks(c, at.Child("lifecycle"))
}

// mostCommand and mostArgs are the maximum numbers of words of the command and of the arguments of a container.
const mostCommand, mostArgs = 100, 10

// moveArgs appends arguments to the command if there are too many for the field. Without a command the group
// runs the command of the image, which is unknown here.
func (out *container) moveArgs(at *field.Path) error {
	if len(out.Arg) > mostArgs && len(out.Command) > 0 {
		out.Command, out.Arg = slices.Concat(out.Command, out.Arg), nil
	}
	if n := len(out.Command); n > mostCommand {
		return errdefs.InvalidInputf("%s: ECI takes %d words, and there are %d with the arguments: put them into a file or a variable", at.Child("command"), mostCommand, n)
	}
	if n := len(out.Arg); n > mostArgs {
		return errdefs.InvalidInputf("%s: ECI takes %d arguments for the command of an image, and there are %d: set command too, which has room for them", at.Child("args"), mostArgs, n)
	}
	return nil
}

// variableName matches the variable names that ECI accepts. Kubernetes accepts more names.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// addresses are the fields with values that are unknown until the group exists.
var addresses = []string{"status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"}

// mostVariables is the maximum number of variables of a container. longestValue is the maximum number of
// characters of a value.
const mostVariables, longestValue = 240, 256

// environment returns the environment of a container. Only ECI knows the addresses of the group, so they are
// field references in ECI too.
func environment(c *corev1.Container, at *field.Path) (out []variable, err error) {
	if n := len(c.Env); n > mostVariables {
		return nil, errdefs.InvalidInputf("%s: ECI takes %d variables, and there are %d with those of envFrom and of services: set enableServiceLinks to false, or mount files", at, mostVariables, n)
	}
	for i := range c.Env {
		e := &c.Env[i]
		if n := utf8.RuneCountInString(e.Value); n > longestValue {
			return nil, errdefs.InvalidInputf("%s: variable %s has %d characters, and ECI takes %d: mount it as a file", at.Index(i), e.Name, n, longestValue)
		}
		if !variableName.MatchString(e.Name) {
			return nil, errdefs.InvalidInputf("%s: variable %q: ECI has names of letters, digits and _, with no digit first: rename it, or its key in envFrom", at.Index(i), e.Name)
		}
		v := variable{Key: e.Name}
		switch from := e.ValueFrom; {
		case from == nil:
			v.Value = &e.Value
		case from.FieldRef != nil && slices.Contains(addresses, from.FieldRef.FieldPath):
			v.FieldRef.FieldPath = "status.podIP" // ECI has no other source, and a group has one address, also for its machine
		default:
			return nil, errdefs.InvalidInputf("%s: variable %s: ECI has no such source", at.Index(i), e.Name)
		}
		out = append(out, v)
	}
	return out, nil
}

// mounts returns the mounts of a container. A disk has no field for read-only, so the mounts of a read-only
// volume are read-only instead.
func (r resolved) mounts(c *corev1.Container, at *field.Path) (out []mount, err error) {
	for i, m := range c.VolumeMounts {
		if m.SubPathExpr != "" {
			return nil, errdefs.InvalidInputf("%s: a group of ECI has subPath only", at.Index(i).Child("subPathExpr"))
		}
		out = append(out, mount{Name: m.Name, MountPath: m.MountPath, SubPath: m.SubPath, ReadOnly: m.ReadOnly || r.fixed(m.Name)})
	}
	return out, nil
}

// fixed reports whether no container may write to a volume with a PersistentVolumeClaim.
func (r resolved) fixed(volume string) bool {
	return slices.ContainsFunc(r.Pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == volume && r.Claimed[volume] != nil && r.ReadOnly(&v)
	})
}

// security sets the user and the rights of a container.
func (r resolved) security(out *container, c *corev1.Container, isInit bool, at *field.Path) error {
	as := podspec.RunAsOf(r.Pod, c)
	if isInit && as.Group != nil {
		return errdefs.InvalidInputf("%s: an init container of ECI has no field for it", at.Child("runAsGroup"))
	}
	if isInit && as.MayBeRoot() { // ECI cannot check the user of its image
		return errdefs.InvalidInputf("%s: an init container of ECI has no field for it: set runAsUser", at.Child("runAsNonRoot"))
	}
	if out.SecurityContext.RunAsUser = as.User; !isInit {
		out.SecurityContextRunAsGroup, out.SecurityContextRunAsNonRoot = as.Group, as.NonRoot
	}
	s := c.SecurityContext
	if s == nil {
		return nil
	}
	out.SecurityContext.ReadOnlyRootFilesystem = s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem
	if s.Capabilities == nil {
		return nil
	}
	for i, name := range s.Capabilities.Add {
		if name != "NET_ADMIN" && name != "NET_RAW" {
			return errdefs.InvalidInputf("%s: %s: a group of ECI can add NET_ADMIN, and NET_RAW where the account has it", at.Child("capabilities", "add").Index(i), name)
		}
		out.SecurityContext.Capability.Add = append(out.SecurityContext.Capability.Add, string(name))
	}
	return nil
}
