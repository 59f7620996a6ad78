// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"fmt"
	"strings"
)

// Examine returns an error if pods cannot run in the remote cluster: it does not answer, it is the home cluster,
// another home cluster has the name, or a permission is missing. Examine changes nothing, and does not need
// RunInBackground.
func (c *Cluster) Examine(ctx context.Context) error {
	if err := c.checkAnswers(ctx); err != nil {
		return err
	}
	if err := c.isNotHome(ctx); err != nil {
		return err
	}
	if err := c.claim.checkClaim(ctx, false); err != nil {
		return err
	}
	var missing []string
	for _, right := range c.config.Rights() {
		for _, resource := range right.Resources {
			verbs, err := c.lackedVerbs(ctx, right, resource)
			if err != nil {
				return fmt.Errorf("ask the remote cluster for the rights on %s: %w", resource, err)
			}
			if len(verbs) > 0 {
				missing = append(missing, strings.Join(verbs, ", ")+" "+resource)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the kubeconfig of the remote cluster may not %s%s: give its identity the role that the page of the provider has",
			strings.Join(missing, "; "), c.namespaceSuffix())
	}
	return nil
}
