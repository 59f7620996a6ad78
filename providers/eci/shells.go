// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
)

// shells remembers the containers with a shell.
type shells struct{ known shellexec.Shells }

// has asks a container to run a shell, by the request of ECI that returns the output. It does not ask again
// about a run with a shell. A run without a shell may only not have been ready.
func (s *shells) has(ctx context.Context, c *client, group, container, run string) (bool, error) {
	return s.known.Has(run, func(command []string) (string, error) {
		words, err := json.Marshal(command)
		if err != nil {
			return "", err
		}
		var answer execAnswer
		err = c.call(ctx, "ExecContainerCommand", execRequest{
			ContainerGroupID: group, ContainerName: container, Command: string(words), Stdin: new(false), Sync: true,
		}, &answer)
		var said *apiError
		if errors.As(err, &said) && said.status == http.StatusBadRequest && !said.throttled() { // the answer of ECI for a missing shell is not documented
			return "", nil
		}
		return answer.SyncResponse, err
	})
}
