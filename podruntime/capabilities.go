// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
)

// Check refuses a pod if CreatePod of a Runtime with this configuration would refuse it, with the same error. It depends only on the pod.
func Check(cfg Config, pod *corev1.Pod) error {
	local := slices.Clone(cfg.LocalVolumes)
	if cfg.ProvisionVolumes != "" {
		local = append(local, cfg.ProvisionVolumes)
	}
	pulls := func(context.Context, *corev1.Pod, *corev1.Volume) (*runtimeapi.Mount, error) { return nil, nil }
	return volumes.Config{HostPaths: cfg.HostPaths, LocalVolumes: local, Image: pulls}.Check(pod)
}

// Capabilities returns the features of a Runtime with this configuration.
func Capabilities(cfg Config) capability.Declaration {
	d := capability.All().
		Lacks("this node has no volume plugins", capability.CSIVolumes, capability.OtherVolumes, capability.BlockDevices).
		Note("of the kinds `local` and `hostPath`, as file systems, in the directories of the provider's configuration", capability.PersistentVolume).
		Note("`podCertificate` needs a node with an identity of its own, not a ServiceAccount's", capability.CertificateFiles).
		Lacks("this node mounts volumes without further options", capability.MountOptions).
		Lacks("this node prepares no devices", capability.ResourceClaims).
		Lacks("this node has limits for containers, not for pods as a whole", capability.PodResources).
		Lacks("this node hands out no user IDs to pods", capability.UserNamespaces).
		Note("without effect on Linux containers, as with a kubelet", capability.WindowsOptions)
	if len(cfg.HostPaths) == 0 {
		d = d.Lacks("no directory of the machine is open to pods; see hostPaths in the provider's configuration", capability.HostPath)
	}
	if len(cfg.HostPaths)+len(cfg.LocalVolumes) == 0 && cfg.ProvisionVolumes == "" {
		d = d.Lacks("no directory of the machine is open to PersistentVolumes; see localVolumes in the provider's configuration", capability.PersistentVolume)
	}
	if !cfg.Privileged {
		d = d.Lacks("pods get no power over the machine; see privileged in the provider's configuration",
			capability.Privileged, capability.HostNetwork, capability.HostNamespaces, capability.UnmaskedProc)
	}
	for feature, why := range cfg.Lacks {
		d = d.Lacks(why, feature)
	}
	for feature, note := range cfg.Notes {
		if d.Has(feature) {
			if own := d.Remark(feature); own != "" {
				note = own + "; " + note
			}
			d = d.Note(note, feature)
		}
	}
	return d
}

// Capabilities returns the features of this Runtime. Pods that need more are refused.
func (r *Runtime) Capabilities() capability.Declaration { return Capabilities(r.cfg) }

var _ capability.Declarer = (*Runtime)(nil)
