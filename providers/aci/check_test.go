// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/checkcase"
)

// TestCheckAndNodeRefuseInTheSameWords: a node makes the pods that check lets pass, and refuses the others as check does.
func TestCheckAndNodeRefuseInTheSameWords(t *testing.T) {
	p := testAzure(t).provider(t, nil).run(t)
	p.UsePodObjects(checkcase.Objects{})
	offline := &driver{config: p.driver.config, mapping: p.driver.mapping}
	checkcase.Compare(t, p.Capabilities().LeaveOut, p.CreatePod, offline.check)
}
