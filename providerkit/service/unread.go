// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// Unread returns the inputs of a pod without reading its ConfigMaps, Secrets and tokens. With it, the mapping of a driver can refuse the
// pod without a node; see Check of cli.Provider. Each object has the keys named by the pod, and each Secret also has the keys in more, with
// a placeholder value. A volume with a PersistentVolume claim is an emptyDir, because the claim was not looked up. Errors are of the kind
// invalid-input, with the messages of CreatePod.
func Unread(owner identity.Owner, pod *corev1.Pod, more ...string) (*Inputs, error) {
	pod = pod.DeepCopy()
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; claims(v) {
			v.VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
	}
	objects := podspec.NewUnread(pod, more...)
	r := resolver{config: Config{Owner: owner, Allocatable: podspec.UnreadAllocatable}, objects: objects, tokens: objects}
	return r.resolve(context.Background(), pod)
}
