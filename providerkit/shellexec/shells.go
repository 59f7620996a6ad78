// SPDX-License-Identifier: Apache-2.0

package shellexec

import (
	"crypto/rand"
	"strings"
	"sync"
)

// mostShells is the maximum number of remembered runs.
const mostShells = 1000

// Shells remembers which container runs have a shell. The zero value is empty.
type Shells struct {
	mu    sync.Mutex
	known map[string]bool // guarded by mu
}

// Has reports whether a run of a container can run a shell. It calls try with a command that prints a word, unless the run is known to have
// a shell. A negative result is not remembered, because the run may not have been ready.
func (s *Shells) Has(run string, try func(command []string) (output string, err error)) (bool, error) {
	s.mu.Lock()
	has := s.known[run]
	s.mu.Unlock()
	if has {
		return true, nil
	}
	mark := rand.Text()
	output, err := try([]string{"sh", "-c", "echo " + mark})
	if err != nil || !strings.Contains(output, mark) {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= mostShells {
		s.known = map[string]bool{}
	}
	s.known[run] = true
	return true, nil
}
