// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// Annotations of CCI.
const (
	annotationSize = "resource.cci.io/pod-size-specs"
	annotationType = "resource.cci.io/instance-type"
	annotationGPU  = "cri.cci.io/gpu-driver"
)

// gpuPrefix is the prefix of GPU resources in API 1.0, such as nvidia.com/gpu-tesla-v100-16GB:
// https://support.huaweicloud.com/api-cci/createCoreV1NamespacedPod.html, read on 2026-11-28.
const gpuPrefix = "nvidia.com/gpu-"

// maxContainers10 is the maximum number of containers of a pod of API 1.0.
const maxContainers10 = 5

// adjustPod changes the remote pod so that CCI accepts it, or refuses the pod.
func (c Config) adjustPod(home, remote *corev1.Pod) error {
	if owner := metav1.GetControllerOf(home); owner != nil && owner.Kind == "DaemonSet" {
		return errdefs.InvalidInputf("CCI runs no pods of a DaemonSet: its nodes are not yours: let %s not tolerate this node", owner.Name)
	}
	if err := c.refusePod(remote); err != nil {
		return err
	}
	if c.API == API20 {
		leaveOut(&remote.Spec)
	}
	if err := c.buySize(remote); err != nil {
		return err
	}
	if c.InstanceType != "" {
		remote.Annotations[annotationType] = c.InstanceType
	}
	if err := c.driveGPUs(remote); err != nil {
		return err
	}
	return onlyDocumented(c.API, remote)
}

// driveGPUs sets the driver of a GPU pod, unless the pod specifies one.
func (c Config) driveGPUs(remote *corev1.Pod) error {
	for _, list := range [][]corev1.Container{remote.Spec.InitContainers, remote.Spec.Containers} {
		for i := range list {
			for name := range list[i].Resources.Limits {
				switch {
				case !strings.HasPrefix(string(name), gpuPrefix) || remote.Annotations[annotationGPU] != "":
				case c.GPUDriver == "":
					return errdefs.InvalidInputf("container %q: resource %s: CCI wants the driver of GPUs: name gpuDriver, such as gpu-460.106, in the configuration of this node", list[i].Name, name)
				default:
					remote.Annotations[annotationGPU] = c.GPUDriver
				}
			}
		}
	}
	return nil
}

// leaveOut removes fields that API 2.0 does not have and that would have no effect there. Pods get no token of
// CCI and no service variables. CCI pulls the images of each pod, so imagePullPolicy does not matter. The
// subdomain, which pods of a StatefulSet have, refers to a Service of the home cluster, which has no DNS name in
// CCI.
func leaveOut(s *corev1.PodSpec) {
	s.Subdomain = ""
	s.ServiceAccountName, s.AutomountServiceAccountToken, s.EnableServiceLinks = "", nil, nil
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			list[i].ImagePullPolicy = ""
		}
	}
}

// refusePod returns an error for settings in documented fields that CCI rejects.
func (c Config) refusePod(remote *corev1.Pod) error {
	s := &remote.Spec
	empty := map[string]bool{}
	for _, v := range s.Volumes {
		empty[v.Name] = v.EmptyDir != nil
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			k := &list[i]
			for _, m := range k.VolumeMounts {
				if empty[m.Name] && (m.SubPath != "" || m.SubPathExpr != "") {
					return errdefs.InvalidInputf("container %q: mount %s: subPath: CCI has none of an emptyDir", k.Name, m.MountPath)
				}
			}
			if c.API == API10 && k.StartupProbe != nil && k.StartupProbe.TCPSocket != nil {
				return errdefs.InvalidInputf("container %q: startupProbe.tcpSocket: API 1.0 of CCI has none: use httpGet or exec", k.Name)
			}
			if err := c.onlyKnownResources(k); err != nil {
				return err
			}
		}
	}
	if err := storage.Check(remote, resource.MustParse(storageGiven), "CCI"); err != nil {
		return err
	}
	if c.API == API10 && len(s.Containers) > maxContainers10 {
		return errdefs.InvalidInputf("spec.containers: %d: API 1.0 of CCI takes %d at most", len(s.Containers), maxContainers10)
	}
	return nil
}

// storageGiven is the ephemeral storage that each pod has:
// https://support.huaweicloud.com/intl/en-us/api-cci/pro_ys.html of 2024-05-31.
const storageGiven = "20G"

// onlyKnownResources returns an error for resources that CCI does not have. levelContainer leaves storage out of
// the request, because each pod has storage.
func (c Config) onlyKnownResources(k *corev1.Container) error {
	for _, l := range []corev1.ResourceList{k.Resources.Limits, k.Resources.Requests} {
		for name := range l {
			if c.API == API10 && strings.HasPrefix(string(name), gpuPrefix) {
				continue
			}
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
				return errdefs.InvalidInputf("container %q: resource %s: pods of CCI have cpu, memory and ephemeral-storage", k.Name, name)
			}
		}
	}
	return nil
}

// buySize sets the size of the pod, and makes requests and limits equal.
func (c Config) buySize(remote *corev1.Pod) error {
	s := &remote.Spec
	if c.API == API10 { // containers of this API share no resources
		c.setDefaults(s.InitContainers)
		c.setDefaults(s.Containers)
	}
	var sum, most sizing.Size
	for i := range s.InitContainers {
		most = most.Most(c.levelContainer(&s.InitContainers[i]))
	}
	for i := range s.Containers {
		sum = sum.Add(c.levelContainer(&s.Containers[i]))
	}
	asked := sum.Most(most)
	whole := sizing.Of(c.DefaultResources)
	if asked.MilliCPU == 0 {
		asked.MilliCPU = whole.MilliCPU
	}
	if asked.Memory == 0 {
		asked.Memory = whole.Memory
	}
	bought, ok := sizing.Fit(c.sizeRows(), asked)
	if !ok {
		return errdefs.InvalidInputf("the pod needs %s: CCI has no size so large, or none of such proportions", asked)
	}
	if c.API == API10 { // with this API, the size of a pod is the sum of its containers
		fillFirst(s.Containers, bought, sum)
	} else {
		remote.Annotations[annotationSize] = formatSize(bought)
	}
	return nil
}

// levelContainer sets requests and limits of a container to the limit or, without one, to the request, and
// returns them. With API 1.0 they are rounded up to a container size.
func (c Config) levelContainer(k *corev1.Container) sizing.Size {
	both := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q, ok := k.Resources.Limits[name]; ok {
			both[name] = q
		} else if q, ok := k.Resources.Requests[name]; ok {
			both[name] = q
		}
	}
	if c.API == API10 {
		asked := containerSize10(sizing.Of(both))
		both[corev1.ResourceCPU] = *resource.NewMilliQuantity(asked.MilliCPU, resource.DecimalSI)
		both[corev1.ResourceMemory] = *resource.NewQuantity(asked.Memory, resource.BinarySI)
	}
	asked := sizing.Of(both)
	for _, l := range []corev1.ResourceList{k.Resources.Requests, k.Resources.Limits} {
		for name, q := range l {
			if strings.HasPrefix(string(name), gpuPrefix) {
				both[name] = q
			}
		}
	}
	k.Resources.Limits, k.Resources.Requests = nil, nil
	if len(both) > 0 {
		k.Resources.Limits, k.Resources.Requests = both, both.DeepCopy()
	}
	return asked
}

// setDefaults sets the default CPU and memory of containers without a request and a limit.
func (c Config) setDefaults(containers []corev1.Container) {
	for i := range containers {
		r := &containers[i].Resources
		for name, q := range c.DefaultResources {
			_, limited := r.Limits[name]
			if _, requested := r.Requests[name]; !limited && !requested {
				if r.Limits == nil {
					r.Limits = corev1.ResourceList{}
				}
				r.Limits[name] = q.DeepCopy()
			}
		}
	}
}

// fillFirst adds the rest of the pod's size to the first container.
func fillFirst(containers []corev1.Container, bought, sum sizing.Size) {
	r := &containers[0].Resources
	for name, left := range map[corev1.ResourceName]*resource.Quantity{
		corev1.ResourceCPU:    resource.NewMilliQuantity(bought.MilliCPU-sum.MilliCPU, resource.DecimalSI),
		corev1.ResourceMemory: resource.NewQuantity(bought.Memory-sum.Memory, resource.BinarySI),
	} {
		q := r.Limits[name].DeepCopy()
		q.Add(*left)
		r.Limits[name], r.Requests[name] = q, q.DeepCopy()
	}
}

// sizeRows returns the sizes of the configured API.
func (c Config) sizeRows() []sizing.Row {
	if c.API == API10 {
		return sizes10
	}
	return sizes20
}
