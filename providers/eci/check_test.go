// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/checkcase"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestCheckAndNodeRefuseInTheSameWords: a node makes the pods that check lets pass, and refuses the others as check does.
func TestCheckAndNodeRefuseInTheSameWords(t *testing.T) {
	h := newHome(t)
	p, _ := h.start()
	p.UsePodObjects(checkcase.Objects{})
	checkcase.Compare(t, p.Capabilities().LeaveOut, p.CreatePod, p.driver.mapping.check, program.Program{Stay: program.Forever}.Args()...)
}
