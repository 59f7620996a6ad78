// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

var (
	_ nodeutil.Provider     = (*process.Provider)(nil)
	_ node.PodNotifier      = (*process.Provider)(nil)
	_ node.PodObjectsUser   = (*process.Provider)(nil)
	_ node.BackgroundRunner = (*process.Provider)(nil)
	_ node.NodeProvider     = (*process.Provider)(nil)
	_ cli.NodeConfigurer    = (*process.Provider)(nil)
	_ podruntime.Streamer   = (*process.Runtime)(nil)
)
