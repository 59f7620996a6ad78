// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"sync"
)

// shells remembers the containers with a shell.
type shells struct {
	mu    sync.Mutex
	known map[string]bool // guarded by mu; by the ID of a run
}

// mostShells is how many containers are remembered.
const mostShells = 1000

// has asks a container to run a shell, by the request of ECI that returns the output. It does not ask again
// about a run with a shell. A run without a shell may only not have been ready.
func (s *shells) has(ctx context.Context, c *client, group, container, run string) (bool, error) {
	s.mu.Lock()
	has := s.known[run]
	s.mu.Unlock()
	if has {
		return true, nil
	}
	mark := rand.Text()
	var answer execAnswer
	err := c.call(ctx, "ExecContainerCommand", execRequest{
		ContainerGroupID: group, ContainerName: container, Command: `["sh","-c","echo ` + mark + `"]`, Stdin: new(false), Sync: true,
	}, &answer)
	var said *apiError
	switch {
	case err == nil:
		has = strings.Contains(answer.SyncResponse, mark)
	case errors.As(err, &said) && said.status == http.StatusBadRequest && !said.throttled(): // the answer of ECI for a missing shell is not documented
	default:
		return false, err
	}
	if !has {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= mostShells {
		s.known = map[string]bool{}
	}
	s.known[run] = true
	return true, nil
}
