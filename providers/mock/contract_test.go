// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

var (
	_ nodeutil.Provider = (*provider)(nil)
	_ node.PodNotifier  = (*provider)(nil)
)
