// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	corev1 "k8s.io/api/core/v1"

	kitidentity "github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// check refuses the pods that Create would refuse for their own content.
func (c Config) check(pod *corev1.Pod) error {
	in, err := service.Unread(kitidentity.Owner{}, pod)
	if err != nil {
		return err
	}
	args, err := c.submission(pod, identity{}, "", "", "")
	if err == nil && c.REST != nil {
		_, err = restJob(args)
	}
	if err != nil {
		return err
	}
	return c.setImages(in.Pod)
}
