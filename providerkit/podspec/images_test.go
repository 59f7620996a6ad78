// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

func TestRegistryImageDropsDockerPrefix(t *testing.T) {
	for image, want := range map[string]string{
		"ubuntu": "ubuntu", "docker://ubuntu": "ubuntu", "docker://registry.example:5000/a/b:1": "registry.example:5000/a/b:1",
		"registry.example/a@sha256:0": "registry.example/a@sha256:0", "": "",
	} {
		if got, err := podspec.RegistryImage(image); got != want || err != nil {
			t.Errorf("image %q: got %q and %v, want %q", image, got, err, want)
		}
	}
}

func TestRegistryImageRefusesWhatNoRegistryHas(t *testing.T) {
	for _, image := range []string{"oras://registry.example/a:1", "library://a/b", "shub://a", "/cvmfs/images/a.sif", "./a.sif", "../a.sif", "://a"} {
		if got, err := podspec.RegistryImage(image); !errdefs.IsInvalidInput(err) {
			t.Errorf("image %q: got %q and %v, want an error of the kind invalid-input", image, got, err)
		}
	}
}
