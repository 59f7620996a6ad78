// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/checkcase"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestCheckAndNodeRefuseInTheSameWords checks that a node creates each pod that check accepts, and refuses the
// others with the same error.
func TestCheckAndNodeRefuseInTheSameWords(t *testing.T) {
	p := open(t, cloudOf(t))
	checkcase.Compare(t, p.kit.Capabilities().LeaveOut, p.kit.CreatePod, p.mapping.check, program.Program{Stay: program.Forever}.Args()...)
}
