// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"context"
)

// Examine implements cli.Examiner. It does not check permissions on pods, because CCI has no request for that.
func (p *provider) Examine(ctx context.Context) error {
	err := p.place.checkNetworks(ctx)
	if p.config.Network.Name != "" && isMissing(err) {
		return nil // the node creates both at its start
	}
	return err
}
