// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/checkcase"
)

// TestCheckAndNodeRefuseInTheSameWords checks that a node creates each pod that check accepts, and refuses the
// others with the same error.
func TestCheckAndNodeRefuseInTheSameWords(t *testing.T) {
	p := testAzure(t).provider(t, nil).run(t)
	p.UsePodObjects(checkcase.Objects{})
	offline := &driver{config: p.driver.config, mapping: p.driver.mapping}
	checkcase.Compare(t, p.Capabilities().LeaveOut, p.CreatePod, offline.check)
}
