// SPDX-License-Identifier: Apache-2.0

package process

import (
	"encoding/json"
	"fmt"
	"os"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// memoryVolumes returns the memory volumes that the sandbox mounts as a tmpfs of its own, where the containers of
// the pod can share sockets and pipes. gVisor stores the content in a file in the volume's tmpfs directory on the
// host, so the host accounts for it and limits its size.
func memoryVolumes(config *runtimeapi.PodSandboxConfig) ([]shim.MemoryVolume, error) {
	named := config.GetAnnotations()[podruntime.SandboxVolumesAnnotation]
	if named == "" || os.Geteuid() != 0 {
		return nil, nil // without root, volumes in memory are directories of one file system
	}
	var dirs []string
	if err := json.Unmarshal([]byte(named), &dirs); err != nil {
		return nil, fmt.Errorf("read the volumes of the sandbox: %w", err)
	}
	var all []shim.MemoryVolume
	for _, dir := range dirs {
		volume, mounted, err := memoryVolume(dir)
		if err != nil {
			return nil, err
		}
		if mounted {
			all = append(all, volume)
		}
	}
	return all, nil
}
