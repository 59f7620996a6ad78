// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"errors"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
)

// podFiles are the files of pods on this machine outside of the containers: volumes, termination messages, cgroups and logs.
type podFiles struct {
	volumes  *volumes.Volumes
	messages messages
	cgroups  cgroups
	settings criconfig.Settings
	keepLogs bool
}

// removeFiles removes the files of a gone pod.
func (f *podFiles) removeFiles(pod *corev1.Pod) error {
	err := f.removeUnknown(pod.UID)
	if f.keepLogs {
		return err
	}
	return errors.Join(err, os.RemoveAll(f.settings.LogDirectory(pod)))
}

// removeUnknown removes the files of a gone pod whose name is unknown. Its logs stay.
func (f *podFiles) removeUnknown(uid types.UID) error {
	return errors.Join(f.volumes.Remove(uid), f.messages.removePod(uid), f.cgroups.removeGroup(uid))
}

// listPods returns the pods with files. The result may have duplicates.
func (f *podFiles) listPods() ([]types.UID, error) {
	uids, err := f.volumes.Pods()
	more, messagesErr := f.messages.listPods()
	uids = append(append(uids, more...), f.cgroups.podsWithGroup()...)
	return uids, errors.Join(err, messagesErr)
}
