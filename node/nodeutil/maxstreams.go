// SPDX-License-Identifier: Apache-2.0

package nodeutil

// defaultMaxStreams is far above ordinary use, and below the limit of the server's connections.
const defaultMaxStreams = 2000

// streamLimits returns the total limit and the limit per user.
func (cfg *NodeConfig) streamLimits() (inAll, perUser int) {
	inAll, perUser = cfg.MaxStreams, cfg.MaxStreamsPerUser
	if inAll == 0 {
		inAll = defaultMaxStreams
	}
	if perUser == 0 && inAll > 0 {
		perUser = max(1, inAll-inAll/4)
	}
	return inAll, perUser
}
