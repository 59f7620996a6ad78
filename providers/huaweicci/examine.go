// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"context"
)

// Examine implements cli.Examiner. CCI has no request for checking rights, so Examine does not check the rights
// on pods.
func (p *provider) Examine(ctx context.Context) error {
	err := p.place.checkNetworks(ctx)
	if p.config.Network.Name != "" && isMissing(err) {
		return nil // both are made when the node starts
	}
	return err
}
