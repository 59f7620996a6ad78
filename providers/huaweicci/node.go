// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// pingPatience is how long Ping waits for the first attempt to create the namespace.
const pingPatience = 30 * time.Second

// Ping implements node.NodeProvider.
func (p *provider) Ping(ctx context.Context) error {
	timer := time.NewTimer(pingPatience)
	defer timer.Stop()
	select {
	case <-p.tried:
	case <-timer.C:
		return errors.New("CCI has not answered yet")
	case <-ctx.Done():
		return fmt.Errorf("CCI has not answered yet: %w", ctx.Err())
	}
	p.mu.Lock()
	err := p.makeErr
	p.mu.Unlock()
	if err != nil {
		return err
	}
	err = p.Cluster.Ping(ctx)
	if isMissing(err) { // another client has deleted the namespace or network
		select {
		case p.gone <- struct{}{}:
		default:
		}
	}
	return err
}

// isMissing reports whether pods cannot run because the namespace or its network is missing.
func isMissing(err error) bool { return apierrors.IsNotFound(err) || errors.Is(err, errNoNetwork) }
