// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/apiwatch"
	"github.com/virtual-kubelet/virtual-kubelet/internal/sleep"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// probeAPIEvery is the interval of the probes of an API server that does not answer.
const probeAPIEvery = 2 * time.Second

// apiOutage detects that the API server answers again.
type apiOutage struct {
	*podCore
	noted chan struct{} // holds a token after the API server did not answer
}

// endOutage ends an outage for all pods at once. After an unanswered write, each pod would wait up to a minute for its retry. Instead, one
// request every two seconds detects that the API server is back. In a longer outage the fence of the lease closes, and pods wait for the
// next term of leaseTerms.
func (o *apiOutage) endOutage(ctx context.Context) {
	begin := time.Now()
	for out := true; out; {
		if !sleep.For(ctx, probeAPIEvery) {
			return
		}
		out = apiwatch.Unanswered(o.probeServer(ctx, probeAPIEvery))
	}
	o.dropNotice() // drop a second notice of the same outage
	log.G(ctx).Infof("the API server answers again, after %v at least", time.Since(begin).Round(time.Second))
	o.kickAll()
}

// failedToReach starts the probe of the API server if err shows that the API server did not answer.
func (o *apiOutage) failedToReach(err error) {
	if !apiwatch.Unanswered(err) {
		return
	}
	leaveToken(o.noted)
}

// dropNotice discards a token that failedToReach may have left in the meantime.
func (o *apiOutage) dropNotice() {
	select {
	case <-o.noted:
	default:
	}
}
