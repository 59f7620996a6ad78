// SPDX-License-Identifier: Apache-2.0

package mock_test

import (
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/mock"
)

var (
	_ nodeutil.Provider = (*mock.Provider)(nil)
	_ node.PodNotifier  = (*mock.Provider)(nil)
)
