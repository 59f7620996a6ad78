// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// effectiveContext returns the security context of a container, with the pod's values as defaults.
func effectiveContext(pod *corev1.Pod, c *corev1.Container) corev1.SecurityContext {
	var sc corev1.SecurityContext
	if c.SecurityContext != nil {
		sc = *c.SecurityContext
	}
	of := pod.Spec.SecurityContext
	if of == nil {
		return sc
	}
	sc.SELinuxOptions = firstSet(sc.SELinuxOptions, of.SELinuxOptions)
	sc.RunAsUser = firstSet(sc.RunAsUser, of.RunAsUser)
	sc.RunAsGroup = firstSet(sc.RunAsGroup, of.RunAsGroup)
	sc.RunAsNonRoot = firstSet(sc.RunAsNonRoot, of.RunAsNonRoot)
	sc.SeccompProfile = firstSet(sc.SeccompProfile, of.SeccompProfile)
	sc.AppArmorProfile = firstSet(sc.AppArmorProfile, of.AppArmorProfile)
	return sc
}

func firstSet[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func (s Settings) containerSecurity(pod *corev1.Pod, c *corev1.Container, image User) (*runtimeapi.LinuxContainerSecurityContext, error) {
	sc := effectiveContext(pod, c)
	out := &runtimeapi.LinuxContainerSecurityContext{
		Capabilities:   convertCapabilities(sc.Capabilities),
		SelinuxOptions: seLinuxOption(sc.SELinuxOptions),
		RunAsUser:      int64Value(sc.RunAsUser),
		RunAsGroup:     int64Value(sc.RunAsGroup),
		Privileged:     sc.Privileged != nil && *sc.Privileged,
		ReadonlyRootfs: sc.ReadOnlyRootFilesystem != nil && *sc.ReadOnlyRootFilesystem,
		NoNewPrivs:     sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation,
	}
	if out.RunAsUser == nil {
		out.RunAsUser, out.RunAsUsername = int64Value(image.ID), image.Name
	}
	if sc.ProcMount == nil || *sc.ProcMount != corev1.UnmaskedProcMount {
		out.MaskedPaths, out.ReadonlyPaths = maskedPaths(), readonlyPaths()
	}
	var errs [4]error
	out.NamespaceOptions, errs[0] = sharedNamespaces(pod)
	out.SupplementalGroups, out.SupplementalGroupsPolicy, errs[1] = podGroups(pod)
	out.Seccomp, errs[2] = s.seccompProfile(sc.SeccompProfile)
	out.Apparmor, out.ApparmorProfile, errs[3] = appArmorProfile(sc.AppArmorProfile) //nolint:staticcheck // SA1019: containerd 1.6 reads the deprecated field only
	return out, errors.Join(errs[:]...)
}

// podGroups returns the groups of volumes, and the other groups of the pod.
func podGroups(pod *corev1.Pod) (ids []int64, policy runtimeapi.SupplementalGroupsPolicy, err error) {
	sc := pod.Spec.SecurityContext
	if sc == nil {
		return nil, 0, nil
	}
	if sc.FSGroup != nil {
		ids = append(ids, *sc.FSGroup)
	}
	ids = append(ids, sc.SupplementalGroups...)
	if p := sc.SupplementalGroupsPolicy; p != nil {
		value, ok := runtimeapi.SupplementalGroupsPolicy_value[string(*p)]
		if !ok {
			return nil, 0, fmt.Errorf("unsupported supplementalGroupsPolicy: %s", *p)
		}
		policy = runtimeapi.SupplementalGroupsPolicy(value)
	}
	return ids, policy, nil
}

func (s Settings) seccompProfile(p *corev1.SeccompProfile) (*runtimeapi.SecurityProfile, error) {
	switch {
	case p == nil:
	case p.Type == corev1.SeccompProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, nil
	case p.Type != corev1.SeccompProfileTypeLocalhost:
	case p.LocalhostProfile == nil || !filepath.IsLocal(*p.LocalhostProfile):
		return nil, errors.New("localhostProfile must be set, to a name below the directory of profiles, if seccompProfile type is Localhost")
	default:
		return &runtimeapi.SecurityProfile{
			ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: filepath.Join(s.SeccompRoot, *p.LocalhostProfile),
		}, nil
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, nil
}

// appArmorProfile returns the profile in both formats: older runtimes read the second one.
func appArmorProfile(p *corev1.AppArmorProfile) (*runtimeapi.SecurityProfile, string, error) {
	switch {
	case p == nil:
		return nil, "", nil
	case p.Type == corev1.AppArmorProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, corev1.DeprecatedAppArmorBetaProfileRuntimeDefault, nil
	case p.Type == corev1.AppArmorProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, corev1.DeprecatedAppArmorBetaProfileNameUnconfined, nil
	case p.Type == corev1.AppArmorProfileTypeLocalhost && p.LocalhostProfile != nil:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: *p.LocalhostProfile},
			corev1.DeprecatedAppArmorBetaProfileNamePrefix + *p.LocalhostProfile, nil
	case p.Type == corev1.AppArmorProfileTypeLocalhost:
		return nil, "", errors.New("missing localhost apparmor profile name")
	}
	return nil, "", fmt.Errorf("unknown apparmor profile type: %q", p.Type)
}

func convertCapabilities(c *corev1.Capabilities) *runtimeapi.Capability {
	if c == nil {
		return nil
	}
	out := &runtimeapi.Capability{}
	for _, name := range c.Add {
		out.AddCapabilities = append(out.AddCapabilities, string(name))
	}
	for _, name := range c.Drop {
		out.DropCapabilities = append(out.DropCapabilities, string(name))
	}
	return out
}

func seLinuxOption(o *corev1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

func int64Value(v *int64) *runtimeapi.Int64Value {
	if v == nil {
		return nil
	}
	return &runtimeapi.Int64Value{Value: *v}
}
