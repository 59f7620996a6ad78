// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
)

// clientGone is the cause of a context that ended because the client went away or was dropped, not because the server stops.
type clientGone struct{ why error }

func (e clientGone) Error() string { return fmt.Sprintf("the client left: %v", e.why) }
func (e clientGone) Unwrap() error { return e.why }

func clientLeft(ctx context.Context) bool {
	var gone clientGone
	return errors.As(context.Cause(ctx), &gone)
}
