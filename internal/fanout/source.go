// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// listWatch keeps a reflector from asking for its list as a stream: while the API
// server refuses connections, it would wait between attempts for up to a minute
// without looking at its context.
type listWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is asked by the reflector.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// explain adds to a refusal what most often is behind it.
func explain(ctx context.Context, resource string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	err = fmt.Errorf("many nodes in one process need to list and watch all %s; "+
		"an identity system:node:NAME can be one node only, so use a service account: %w", resource, err)
	log.G(ctx).Error(err.Error())
	return err
}
