// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// What every plugin has. The other abilities are those that it declares: see withAbilities.
var (
	_ nodeutil.Provider             = (*plugin)(nil)
	_ nodeutil.ProbeMetricsProvider = (*plugin)(nil)
	_ node.PodTokensUser            = (*plugin)(nil)
	_ node.PullCredentialsUser      = (*plugin)(nil)
	_ node.BackgroundRunner         = (*plugin)(nil)
	_ node.NodeProvider             = (*plugin)(nil)
	_ capability.Declarer           = (*plugin)(nil)
	_ cli.NodeConfigurer            = (*plugin)(nil)
	_ node.PodNotifier              = reporting{}
	_ node.PodAuthority             = authoritative{}
	_ node.PodObjectsUser           = reading{}
)
