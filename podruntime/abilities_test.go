// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// Interfaces that a node requires of a provider. Only tests import package nodeutil, so that a program without an API server does not contain it.
var (
	_ nodeutil.Provider        = (*Runtime)(nil)
	_ node.PodNotifier         = (*Runtime)(nil)
	_ node.PodAuthority        = (*Runtime)(nil)
	_ node.PodObjectsUser      = (*Runtime)(nil)
	_ node.PodTokensUser       = (*Runtime)(nil)
	_ node.PodTrustBundlesUser = (*Runtime)(nil)
	_ node.PodCertificatesUser = (*Runtime)(nil)
	_ node.PodClaimsUser       = (*Runtime)(nil)

	_ nodeutil.VolumeProvisioner    = (*Runtime)(nil)
	_ nodeutil.ProbeMetricsProvider = (*Runtime)(nil)
	_ node.PullCredentialsUser      = (*Runtime)(nil)
	_ node.BackgroundRunner         = (*Runtime)(nil)
	_ node.NodeProvider             = (*Runtime)(nil)
)
