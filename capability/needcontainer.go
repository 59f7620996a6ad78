// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (n *needs) addContainer(c *corev1.Container, path *field.Path) {
	for i := range c.Ports {
		n.addPort(&c.Ports[i], path.Child("ports").Index(i).Child("hostPort"))
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		n.addIf(from != nil && from.FileKeyRef != nil, EnvFiles, path.Child("env").Index(i).Child("valueFrom", "fileKeyRef"))
	}
	n.addIf(len(c.Resources.Limits) > 0, ContainerLimits, path.Child("resources", "limits"))
	n.addIf(len(c.Resources.Claims) > 0, ResourceClaims, path.Child("resources", "claims"))
	n.addIf(len(c.RestartPolicyRules) > 0, ContainerRestartRules, path.Child("restartPolicyRules"))
	for i := range c.VolumeMounts {
		n.addMount(&c.VolumeMounts[i], path.Child("volumeMounts").Index(i))
	}
	n.addIf(len(c.VolumeDevices) > 0, BlockDevices, path.Child("volumeDevices"))
	n.addProbe(c.LivenessProbe, path.Child("livenessProbe"))
	n.addProbe(c.ReadinessProbe, path.Child("readinessProbe"))
	n.addProbe(c.StartupProbe, path.Child("startupProbe"))
	if l := c.Lifecycle; l != nil {
		n.addIf(l.PostStart != nil, PostStartHooks, path.Child("lifecycle", "postStart"))
		n.addIf(l.PreStop != nil, PreStopHooks, path.Child("lifecycle", "preStop"))
		n.addIf(l.StopSignal != nil, StopSignal, path.Child("lifecycle", "stopSignal"))
	}
	n.addIf(c.TerminationMessagePath != "" && c.TerminationMessagePath != corev1.TerminationMessagePathDefault,
		TerminationMessages, path.Child("terminationMessagePath"))
	n.addIf(c.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError, TerminationMessages, path.Child("terminationMessagePolicy"))
	n.addIf(c.Stdin, InteractiveContainers, path.Child("stdin"))
	n.addIf(c.TTY, InteractiveContainers, path.Child("tty"))
	if s := c.SecurityContext; s != nil {
		n.containerSecurity(s, path.Child("securityContext"))
	}
}

// addPort adds the needs of a container port. In a pod on the network of the node, the API server sets the host port of every port, so such a pod
// only needs HostNetwork, and no host ports.
func (n *needs) addPort(p *corev1.ContainerPort, path *field.Path) {
	n.addIf(p.HostPort != 0 && !n.hostNetwork, HostPorts, path)
	n.addIf(p.HostPort != 0 && p.HostPort != p.ContainerPort, HostPortMapping, path)
}

func (n *needs) addProbe(p *corev1.Probe, path *field.Path) {
	switch {
	case p == nil:
	case p.Exec != nil:
		n.add(ExecProbes, path.Child("exec"))
	case p.HTTPGet != nil:
		n.add(NetworkProbes, path.Child("httpGet"))
	case p.TCPSocket != nil:
		n.add(NetworkProbes, path.Child("tcpSocket"))
	case p.GRPC != nil:
		n.add(NetworkProbes, path.Child("grpc"))
	}
}

// bindMountOptions is the index of the field with a mount's options, or nil in programs with an older API.
var bindMountOptions = func() []int {
	f, _ := reflect.TypeFor[corev1.VolumeMount]().FieldByName("BindMountOptions")
	return f.Index
}()

func (n *needs) addMount(m *corev1.VolumeMount, path *field.Path) {
	n.addIf(m.SubPath != "", SubPath, path.Child("subPath"))
	n.addIf(m.SubPathExpr != "", SubPath, path.Child("subPathExpr"))
	n.addIf(m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone, MountPropagation, path.Child("mountPropagation"))
	n.addIf(m.RecursiveReadOnly != nil && *m.RecursiveReadOnly == corev1.RecursiveReadOnlyEnabled, MountPropagation, path.Child("recursiveReadOnly"))
	n.addIf(bindMountOptions != nil && reflect.ValueOf(m).Elem().FieldByIndex(bindMountOptions).Len() > 0, MountOptions, path.Child("bindMountOptions"))
}

func (n *needs) containerSecurity(s *corev1.SecurityContext, path *field.Path) {
	n.addIf(isTrue(s.Privileged), Privileged, path.Child("privileged"))
	if c := s.Capabilities; c != nil {
		n.addIf(len(c.Add) > 0, Capabilities, path.Child("capabilities", "add"))
		n.addIf(len(c.Drop) > 0, Capabilities, path.Child("capabilities", "drop"))
	}
	n.addIf(s.RunAsUser != nil, RunAsUser, path.Child("runAsUser"))
	n.addIf(s.RunAsGroup != nil, RunAsUser, path.Child("runAsGroup"))
	n.addIf(isTrue(s.RunAsNonRoot), RunAsUser, path.Child("runAsNonRoot"))
	n.addIf(isTrue(s.ReadOnlyRootFilesystem), ReadOnlyRoot, path.Child("readOnlyRootFilesystem"))
	n.addIf(s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation, NoNewPrivileges, path.Child("allowPrivilegeEscalation"))
	n.addIf(s.ProcMount != nil && *s.ProcMount != corev1.DefaultProcMount, UnmaskedProc, path.Child("procMount"))
	n.addSecurity(securityFields{s.SELinuxOptions, s.WindowsOptions, s.SeccompProfile, s.AppArmorProfile}, path)
}

func (n *needs) addVolume(v *corev1.Volume, path *field.Path) {
	switch {
	case v.EmptyDir != nil:
		f := EmptyDir
		if v.EmptyDir.Medium == corev1.StorageMediumMemory {
			f = MemoryEmptyDir
		} else if v.EmptyDir.Medium != corev1.StorageMediumDefault {
			f = OtherVolumes // huge pages
		}
		n.add(f, path.Child("emptyDir"))
	case v.ConfigMap != nil:
		n.add(ObjectVolumes, path.Child("configMap"))
	case v.Secret != nil:
		n.add(ObjectVolumes, path.Child("secret"))
	case v.DownwardAPI != nil:
		n.add(ObjectVolumes, path.Child("downwardAPI"))
	case v.Projected != nil:
		n.addProjected(v.Projected, path.Child("projected"))
	case v.HostPath != nil:
		n.add(HostPath, path.Child("hostPath"))
	case v.Image != nil:
		n.add(ImageVolumes, path.Child("image"))
	case v.PersistentVolumeClaim != nil:
		n.add(PersistentVolume, path.Child("persistentVolumeClaim"))
	case v.Ephemeral != nil:
		n.add(PersistentVolume, path.Child("ephemeral"))
	case v.CSI != nil:
		n.add(CSIVolumes, path.Child("csi"))
	default:
		n.add(OtherVolumes, path)
	}
}

func (n *needs) addProjected(v *corev1.ProjectedVolumeSource, path *field.Path) {
	for i := range v.Sources {
		s, at := &v.Sources[i], path.Child("sources").Index(i)
		switch {
		case s.ServiceAccountToken != nil:
			n.add(TokenVolumes, at.Child("serviceAccountToken"))
		case s.ClusterTrustBundle != nil:
			n.add(CertificateFiles, at.Child("clusterTrustBundle"))
		case s.PodCertificate != nil:
			n.add(CertificateFiles, at.Child("podCertificate"))
		default:
			n.add(ObjectVolumes, at)
		}
	}
}
