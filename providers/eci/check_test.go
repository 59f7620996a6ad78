// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/checkcase"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestCheckAndNodeRefuseInTheSameWords checks that a node creates each pod that check accepts, and refuses the
// others with the same error.
func TestCheckAndNodeRefuseInTheSameWords(t *testing.T) {
	h := newHome(t)
	p, _ := h.start()
	p.UsePodObjects(checkcase.Objects{})
	checkcase.Compare(t, p.Capabilities().LeaveOut, p.CreatePod, p.driver.mapping.check, program.Program{Stay: program.Forever}.Args()...)
}
