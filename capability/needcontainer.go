// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (n *needs) container(c *corev1.Container, path *field.Path) {
	for i := range c.Ports {
		n.port(&c.Ports[i], path.Child("ports").Index(i).Child("hostPort"))
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		n.when(from != nil && from.FileKeyRef != nil, EnvFiles, path.Child("env").Index(i).Child("valueFrom", "fileKeyRef"))
	}
	n.when(len(c.Resources.Limits) > 0, ContainerLimits, path.Child("resources", "limits"))
	n.when(len(c.Resources.Claims) > 0, ResourceClaims, path.Child("resources", "claims"))
	n.when(len(c.RestartPolicyRules) > 0, ContainerRestartRules, path.Child("restartPolicyRules"))
	for i := range c.VolumeMounts {
		n.mount(&c.VolumeMounts[i], path.Child("volumeMounts").Index(i))
	}
	n.when(len(c.VolumeDevices) > 0, BlockDevices, path.Child("volumeDevices"))
	n.probe(c.LivenessProbe, path.Child("livenessProbe"))
	n.probe(c.ReadinessProbe, path.Child("readinessProbe"))
	n.probe(c.StartupProbe, path.Child("startupProbe"))
	if l := c.Lifecycle; l != nil {
		n.when(l.PostStart != nil, PostStartHooks, path.Child("lifecycle", "postStart"))
		n.when(l.PreStop != nil, PreStopHooks, path.Child("lifecycle", "preStop"))
		n.when(l.StopSignal != nil, StopSignal, path.Child("lifecycle", "stopSignal"))
	}
	n.when(c.TerminationMessagePath != "" && c.TerminationMessagePath != corev1.TerminationMessagePathDefault,
		TerminationMessages, path.Child("terminationMessagePath"))
	n.when(c.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError, TerminationMessages, path.Child("terminationMessagePolicy"))
	n.when(c.Stdin, InteractiveContainers, path.Child("stdin"))
	n.when(c.TTY, InteractiveContainers, path.Child("tty"))
	if s := c.SecurityContext; s != nil {
		n.containerSecurity(s, path.Child("securityContext"))
	}
}

// port handles a port of the node. In a pod with the network of the node, every port is a host port, and the API
// server writes it into each: that pod asks for the network, and for no port besides.
func (n *needs) port(p *corev1.ContainerPort, path *field.Path) {
	n.when(p.HostPort != 0 && !n.hostNetwork, HostPorts, path)
	n.when(p.HostPort != 0 && p.HostPort != p.ContainerPort, HostPortMapping, path)
}

func (n *needs) probe(p *corev1.Probe, path *field.Path) {
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

// bindMountOptions is the index of a mount's options, or nil in a program with an older API.
var bindMountOptions = func() []int {
	f, _ := reflect.TypeFor[corev1.VolumeMount]().FieldByName("BindMountOptions")
	return f.Index
}()

func (n *needs) mount(m *corev1.VolumeMount, path *field.Path) {
	n.when(m.SubPath != "", SubPath, path.Child("subPath"))
	n.when(m.SubPathExpr != "", SubPath, path.Child("subPathExpr"))
	n.when(m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone, MountPropagation, path.Child("mountPropagation"))
	n.when(m.RecursiveReadOnly != nil && *m.RecursiveReadOnly == corev1.RecursiveReadOnlyEnabled, MountPropagation, path.Child("recursiveReadOnly"))
	n.when(bindMountOptions != nil && reflect.ValueOf(m).Elem().FieldByIndex(bindMountOptions).Len() > 0, MountOptions, path.Child("bindMountOptions"))
}

func (n *needs) containerSecurity(s *corev1.SecurityContext, path *field.Path) {
	n.when(isTrue(s.Privileged), Privileged, path.Child("privileged"))
	if c := s.Capabilities; c != nil {
		n.when(len(c.Add) > 0, Capabilities, path.Child("capabilities", "add"))
		n.when(len(c.Drop) > 0, Capabilities, path.Child("capabilities", "drop"))
	}
	n.when(s.RunAsUser != nil, RunAsUser, path.Child("runAsUser"))
	n.when(s.RunAsGroup != nil, RunAsUser, path.Child("runAsGroup"))
	n.when(isTrue(s.RunAsNonRoot), RunAsUser, path.Child("runAsNonRoot"))
	n.when(isTrue(s.ReadOnlyRootFilesystem), ReadOnlyRoot, path.Child("readOnlyRootFilesystem"))
	n.when(s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation, NoNewPrivileges, path.Child("allowPrivilegeEscalation"))
	n.when(s.ProcMount != nil && *s.ProcMount != corev1.DefaultProcMount, UnmaskedProc, path.Child("procMount"))
	n.security(securityFields{s.SELinuxOptions, s.WindowsOptions, s.SeccompProfile, s.AppArmorProfile}, path)
}

func (n *needs) volume(v *corev1.Volume, path *field.Path) {
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
		n.projected(v.Projected, path.Child("projected"))
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

func (n *needs) projected(v *corev1.ProjectedVolumeSource, path *field.Path) {
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
