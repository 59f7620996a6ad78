// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// RegistryImage returns the name of an image for a registry: without the prefix docker://, which users of Apptainer and interLink write. An
// image with another prefix, such as oras:// or library://, or a file path is an error of the kind invalid-input, because no registry of
// container images has it.
func RegistryImage(image string) (string, error) {
	scheme, name, hasScheme := strings.Cut(image, "://")
	switch {
	case strings.HasPrefix(image, "/") || strings.HasPrefix(image, "./") || strings.HasPrefix(image, "../"):
		return "", errdefs.InvalidInputf("image %q is a path: want the name of an image in a registry", image)
	case !hasScheme:
		return image, nil
	case scheme != "docker":
		return "", errdefs.InvalidInputf("image %q has the prefix %s://: want the name of an image in a registry, with the prefix docker:// or none", image, scheme)
	}
	return name, nil
}
