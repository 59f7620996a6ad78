// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/imageref"
)

// noImage replaces the image of a program if the image is not valid for any registry.
const noImage = "program"

// setImages gives the containers of a pod the names of their images for a registry. It changes the pod.
func (c Config) setImages(pod *corev1.Pod) error {
	for path, list := range map[string][]corev1.Container{"initContainers": pod.Spec.InitContainers, "containers": pod.Spec.Containers} {
		for i := range list {
			image, err := c.image(pod, list[i].Image)
			if err != nil {
				return errdefs.InvalidInputf("%s: %w", field.NewPath("spec", path).Index(i).Child("image"), err)
			}
			list[i].Image = image
		}
	}
	return nil
}

// image returns the name of an image for a registry. The annotation image-root of the pod is put before a name
// without a prefix. If containers are programs, every image is accepted, because it is ignored.
func (c Config) image(pod *corev1.Pod, image string) (string, error) {
	if !strings.Contains(image, "://") && !strings.HasPrefix(image, "/") {
		image = pod.Annotations[annotationImageRoot] + image
	}
	found, err := podspec.RegistryImage(image)
	if c.Containers != "" {
		return found, err
	}
	if err == nil {
		_, err = imageref.Parse(found)
	}
	if err != nil {
		return noImage, nil
	}
	return found, nil
}
