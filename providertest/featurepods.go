// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// asks makes a pod with one container request a feature, and as few other features as possible.
var asks = map[capability.Feature]func(*corev1.PodSpec){
	capability.RunToCompletion: func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyNever },
	capability.InitContainers:  func(s *corev1.PodSpec) { s.InitContainers = anotherContainer(s) },
	capability.Sidecars: func(s *corev1.PodSpec) {
		always := corev1.ContainerRestartPolicyAlways
		s.InitContainers = anotherContainer(s)
		s.InitContainers[0].RestartPolicy = &always
	},
	capability.EphemeralContainers: func(s *corev1.PodSpec) {
		s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "image"}}}
	},
	capability.ContainerRestartRules: changeFirst(func(c *corev1.Container) { p := corev1.ContainerRestartPolicyNever; c.RestartPolicy = &p }),
	capability.PostStartHooks:        changeFirst(func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{}} }),
	capability.PreStopHooks:          changeFirst(func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{}} }),
	capability.StopSignal: changeFirst(func(c *corev1.Container) {
		signal := corev1.SIGQUIT
		c.Lifecycle = &corev1.Lifecycle{StopSignal: &signal}
	}),
	capability.ExecProbes: changeFirst(func(c *corev1.Container) {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}}}
	}),
	capability.NetworkProbes: changeFirst(func(c *corev1.Container) {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
	}),
	capability.TerminationMessages:   changeFirst(func(c *corev1.Container) { c.TerminationMessagePath = "/elsewhere" }),
	capability.InteractiveContainers: changeFirst(func(c *corev1.Container) { c.TTY = true }),
	capability.ContainerLimits:       changeFirst(func(c *corev1.Container) { c.Resources.Limits = oneCPU() }),
	capability.PodResources:          func(s *corev1.PodSpec) { s.Resources = &corev1.ResourceRequirements{Limits: oneCPU()} },
	capability.ResourceClaims:        func(s *corev1.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{{Name: "device"}} },

	capability.EmptyDir: volumeOf(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
	capability.MemoryEmptyDir: volumeOf(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
		Medium: corev1.StorageMediumMemory,
	}}),
	capability.ObjectVolumes:    volumeOf(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}),
	capability.TokenVolumes:     projectedVolume(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}),
	capability.HostPath:         volumeOf(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
	capability.ImageVolumes:     volumeOf(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{}}),
	capability.PersistentVolume: volumeOf(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}),
	capability.CSIVolumes:       volumeOf(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}),
	capability.CertificateFiles: projectedVolume(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}}),
	capability.OtherVolumes:     volumeOf(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}),
	capability.SubPath:          mountOf(func(m *corev1.VolumeMount) { m.SubPath = "part" }),
	capability.BlockDevices:     changeFirst(func(c *corev1.Container) { c.VolumeDevices = []corev1.VolumeDevice{{Name: "disk"}} }),
	capability.MountPropagation: mountOf(func(m *corev1.VolumeMount) {
		both := corev1.MountPropagationBidirectional
		m.MountPropagation = &both
	}),
	capability.EnvFiles: changeFirst(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{}}}}
	}),

	capability.HostNetwork: func(s *corev1.PodSpec) { s.HostNetwork = true },
	capability.HostPorts:   changeFirst(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}} }),
	capability.HostPortMapping: changeFirst(func(c *corev1.Container) {
		c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
	}),
	capability.HostAliases: func(s *corev1.PodSpec) { s.HostAliases = []corev1.HostAlias{{IP: "192.0.2.1"}} },
	capability.DNS:         func(s *corev1.PodSpec) { s.DNSConfig = &corev1.PodDNSConfig{} },
	capability.Hostname:    func(s *corev1.PodSpec) { s.Hostname = "host" },

	capability.HostNamespaces:  func(s *corev1.PodSpec) { s.HostPID = true },
	capability.SharedProcesses: func(s *corev1.PodSpec) { s.ShareProcessNamespace = truePointer() },
	capability.UserNamespaces:  func(s *corev1.PodSpec) { no := false; s.HostUsers = &no },
	capability.FSGroup:         func(s *corev1.PodSpec) { s.SecurityContext = &corev1.PodSecurityContext{FSGroup: int64Pointer(1)} },
	capability.Sysctls: func(s *corev1.PodSpec) {
		s.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.shm_rmid_forced", Value: "1"}}}
	},
	capability.RuntimeClass: func(s *corev1.PodSpec) { class := "special"; s.RuntimeClassName = &class },
	capability.Privileged:   security(func(s *corev1.SecurityContext) { s.Privileged = truePointer() }),
	capability.RunAsUser:    security(func(s *corev1.SecurityContext) { s.RunAsUser = int64Pointer(1) }),
	capability.Capabilities: security(func(s *corev1.SecurityContext) {
		s.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}),
	capability.NoNewPrivileges: security(func(s *corev1.SecurityContext) { no := false; s.AllowPrivilegeEscalation = &no }),
	capability.ReadOnlyRoot:    security(func(s *corev1.SecurityContext) { s.ReadOnlyRootFilesystem = truePointer() }),
	capability.Seccomp: security(func(s *corev1.SecurityContext) {
		s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}),
	capability.AppArmor: security(func(s *corev1.SecurityContext) {
		s.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	}),
	capability.SELinux:        security(func(s *corev1.SecurityContext) { s.SELinuxOptions = &corev1.SELinuxOptions{} }),
	capability.UnmaskedProc:   security(func(s *corev1.SecurityContext) { p := corev1.UnmaskedProcMount; s.ProcMount = &p }),
	capability.WindowsOptions: security(func(s *corev1.SecurityContext) { s.WindowsOptions = &corev1.WindowsSecurityContextOptions{} }),
}

// unaskable has the features that no new pod can request, and the reasons.
var unaskable = map[capability.Feature]string{
	capability.InPlaceResize: "a change of a pod that runs asks for it",
	capability.MountOptions:  "the field is in newer versions of the API only",
}

func anotherContainer(s *corev1.PodSpec) []corev1.Container {
	c := *s.Containers[0].DeepCopy()
	c.Name = "another"
	return []corev1.Container{c}
}

func changeFirst(change func(*corev1.Container)) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { change(&s.Containers[0]) }
}

func oneCPU() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
}

func volumeOf(source corev1.VolumeSource) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }
}

func projectedVolume(p corev1.VolumeProjection) func(*corev1.PodSpec) {
	return volumeOf(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{p}}})
}

func mountOf(change func(*corev1.VolumeMount)) func(*corev1.PodSpec) {
	return changeFirst(func(c *corev1.Container) {
		c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		change(&c.VolumeMounts[0])
	})
}
