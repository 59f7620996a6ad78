// SPDX-License-Identifier: Apache-2.0

//go:build linux

package azurebatch

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/checkcase"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestCheckAndNodeRefuseInTheSameWords: a node accepts the pods that check accepts, and refuses other pods with the same message.
func TestCheckAndNodeRefuseInTheSameWords(t *testing.T) {
	t.Parallel()
	s := newStill()
	pool := aPool()
	pool.Slots = 256
	h := newHome(t, pool, 1, s)
	s.put = h.cloud.Store.PutWith
	d, _ := h.start()
	d.kit.UsePodObjects(checkcase.Objects{})
	checkcase.Compare(t, d.kit.Capabilities().LeaveOut, d.kit.CreatePod, d.config.refusePod, program.Program{Stay: program.Forever}.Args()...)
}
