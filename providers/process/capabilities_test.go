// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// Labels mean nothing to a kernel without SELinux, and a kubelet there runs pods that name some.
func TestLabelsAreRefusedOnlyWhereTheyWouldBeKept(t *testing.T) {
	if lacks, _ := declare(surroundings{isolation: shim.Root}); lacks[capability.SELinux] != "" {
		t.Errorf("without SELinux, labels are refused: %s", lacks[capability.SELinux])
	}
	if lacks, _ := declare(surroundings{isolation: shim.Root, selinux: true}); lacks[capability.SELinux] == "" {
		t.Error("with SELinux, labels that nobody sets are not refused")
	}
}
