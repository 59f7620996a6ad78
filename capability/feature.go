// SPDX-License-Identifier: Apache-2.0

package capability

// Feature is a feature of pods. A backend may lack it.
type Feature string

// Features, by the part of the pod.
const (
	// RunToCompletion means that ended containers do not restart, which pods of Jobs need.
	RunToCompletion       Feature = "RunToCompletion"
	InitContainers        Feature = "InitContainers"
	Sidecars              Feature = "Sidecars"
	EphemeralContainers   Feature = "EphemeralContainers"
	ContainerRestartRules Feature = "ContainerRestartRules"
	PostStartHooks        Feature = "PostStartHooks"
	PreStopHooks          Feature = "PreStopHooks"
	StopSignal            Feature = "StopSignal"
	ExecProbes            Feature = "ExecProbes"
	NetworkProbes         Feature = "NetworkProbes"
	TerminationMessages   Feature = "TerminationMessages"
	InteractiveContainers Feature = "InteractiveContainers"

	ContainerLimits Feature = "ContainerLimits"
	PodResources    Feature = "PodResources"
	InPlaceResize   Feature = "InPlaceResize"
	ResourceClaims  Feature = "ResourceClaims"

	EmptyDir         Feature = "EmptyDir"
	MemoryEmptyDir   Feature = "MemoryEmptyDir"
	ObjectVolumes    Feature = "ObjectVolumes"
	TokenVolumes     Feature = "TokenVolumes"
	HostPath         Feature = "HostPath"
	ImageVolumes     Feature = "ImageVolumes"
	PersistentVolume Feature = "PersistentVolume"
	CSIVolumes       Feature = "CSIVolumes"
	CertificateFiles Feature = "CertificateFiles"
	OtherVolumes     Feature = "OtherVolumes"
	SubPath          Feature = "SubPath"
	BlockDevices     Feature = "BlockDevices"
	MountPropagation Feature = "MountPropagation"
	MountOptions     Feature = "MountOptions"
	EnvFiles         Feature = "EnvFiles"

	HostNetwork Feature = "HostNetwork"
	HostPorts   Feature = "HostPorts"
	// HostPortMapping means that a host port differs from the port of the container.
	HostPortMapping Feature = "HostPortMapping"
	HostAliases     Feature = "HostAliases"
	DNS             Feature = "DNS"
	Hostname        Feature = "Hostname"

	Privileged      Feature = "Privileged"
	HostNamespaces  Feature = "HostNamespaces"
	SharedProcesses Feature = "SharedProcesses"
	UserNamespaces  Feature = "UserNamespaces"
	RunAsUser       Feature = "RunAsUser"
	FSGroup         Feature = "FSGroup"
	Capabilities    Feature = "Capabilities"
	NoNewPrivileges Feature = "NoNewPrivileges"
	ReadOnlyRoot    Feature = "ReadOnlyRoot"
	Seccomp         Feature = "Seccomp"
	AppArmor        Feature = "AppArmor"
	SELinux         Feature = "SELinux"
	UnmaskedProc    Feature = "UnmaskedProc"
	Sysctls         Feature = "Sysctls"
	WindowsOptions  Feature = "WindowsOptions"
	RuntimeClass    Feature = "RuntimeClass"
)

// entry is a feature with its text in the support table.
type entry struct {
	feature Feature
	fields  string // fields of a pod that request the feature
}

// features are all features, in the order of the support table.
var features = []entry{
	{RunToCompletion, "`restartPolicy: Never`, `OnFailure`"},
	{InitContainers, "`initContainers`"},
	{Sidecars, "`initContainers[*].restartPolicy: Always`"},
	{EphemeralContainers, "`ephemeralContainers`, `kubectl debug`"},
	{ContainerRestartRules, "`containers[*].restartPolicy`, `restartPolicyRules`"},
	{PostStartHooks, "`lifecycle.postStart`"},
	{PreStopHooks, "`lifecycle.preStop`"},
	{StopSignal, "`lifecycle.stopSignal`"},
	{ExecProbes, "probes with `exec`"},
	{NetworkProbes, "probes with `httpGet`, `tcpSocket`, `grpc`"},
	{TerminationMessages, "`terminationMessagePath`, `terminationMessagePolicy`"},
	{InteractiveContainers, "`stdin`, `tty`"},
	{ContainerLimits, "`resources.limits`"},
	{PodResources, "`spec.resources`"},
	{InPlaceResize, "a change of `resources` of a pod that runs"},
	{ResourceClaims, "`resourceClaims`"},
	{EmptyDir, "volumes: `emptyDir`"},
	{MemoryEmptyDir, "volumes: `emptyDir.medium: Memory`"},
	{ObjectVolumes, "volumes: `configMap`, `secret`, `downwardAPI`, and those in `projected`"},
	{TokenVolumes, "volumes: `projected.serviceAccountToken`"},
	{HostPath, "volumes: `hostPath`"},
	{ImageVolumes, "volumes: `image`"},
	{PersistentVolume, "volumes: `persistentVolumeClaim`, `ephemeral`"},
	{CSIVolumes, "volumes: `csi`"},
	{CertificateFiles, "volumes: `projected.clusterTrustBundle`, `projected.podCertificate`"},
	{OtherVolumes, "volumes of all other kinds"},
	{SubPath, "`volumeMounts[*].subPath`, `subPathExpr`"},
	{BlockDevices, "`volumeDevices`"},
	{MountPropagation, "`volumeMounts[*].mountPropagation`, `recursiveReadOnly`"},
	{MountOptions, "`volumeMounts[*].bindMountOptions`"},
	{EnvFiles, "`env[*].valueFrom.fileKeyRef`"},
	{HostNetwork, "`hostNetwork`"},
	{HostPorts, "`ports[*].hostPort`"},
	{HostPortMapping, "`ports[*].hostPort` other than its `containerPort`"},
	{HostAliases, "`hostAliases`"},
	{DNS, "`dnsPolicy: None`, `dnsConfig`"},
	{Hostname, "`hostname`, `subdomain`, `setHostnameAsFQDN`, `hostnameOverride`"},
	{Privileged, "`securityContext.privileged`"},
	{HostNamespaces, "`hostPID`, `hostIPC`"},
	{SharedProcesses, "`shareProcessNamespace`"},
	{UserNamespaces, "`hostUsers: false`"},
	{RunAsUser, "`runAsUser`, `runAsGroup`, `runAsNonRoot`, `supplementalGroups`"},
	{FSGroup, "`fsGroup`"},
	{Capabilities, "`capabilities`"},
	{NoNewPrivileges, "`allowPrivilegeEscalation: false`"},
	{ReadOnlyRoot, "`readOnlyRootFilesystem`"},
	{Seccomp, "`seccompProfile`"},
	{AppArmor, "`appArmorProfile`"},
	{SELinux, "`seLinuxOptions`"},
	{UnmaskedProc, "`procMount`"},
	{Sysctls, "`sysctls`"},
	{WindowsOptions, "`windowsOptions`"},
	{RuntimeClass, "`runtimeClassName`"},
}

// Features returns all features.
func Features() []Feature {
	all := make([]Feature, len(features))
	for i := range features {
		all[i] = features[i].feature
	}
	return all
}
