// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/virtual-kubelet/virtual-kubelet/internal/apiwatch"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// probeAPIEvery is how often an API server that does not answer is asked whether
// it is back.
const probeAPIEvery = 2 * time.Second

// probeAPIServer ends an outage for everybody at once. Each pod whose write was not
// answered waits for a retry of its own, up to a minute; one request every two
// seconds finds out for all of them that the API server is back.
func (c *PodController) probeAPIServer(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.outage:
		}
		begin := time.Now()
		for out := true; out; {
			timer.Reset(probeAPIEvery)
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			out = apiwatch.Unanswered(c.probe(ctx))
		}
		c.noticed() // failures of the outage that was told twice
		log.G(ctx).Infof("the API server answers again, after %v at least", time.Since(begin).Round(time.Second))
		c.Kick()
	}
}

// failedToReach starts the probe of the API server if err says that the API server was not reached.
func (c *PodController) failedToReach(err error) {
	if !apiwatch.Unanswered(err) {
		return
	}
	select {
	case c.outage <- struct{}{}:
	default:
	}
}

// noticed takes back what failedToReach may have said meanwhile.
func (c *PodController) noticed() {
	select {
	case <-c.outage:
	default:
	}
}

// probe makes the cheapest request that this identity may make.
func (c *PodController) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeAPIEvery)
	defer cancel()
	options := metav1.ListOptions{Limit: 1, ResourceVersion: "0"}
	if c.nodeName != "" {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", c.nodeName).String()
	}
	_, err := c.client.Pods(metav1.NamespaceAll).List(ctx, options)
	return err
}
