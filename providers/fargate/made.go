// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"crypto/sha256"
	"sync"
)

// remembered is how many definitions, and how many secrets, are kept in mind: more are looked for again.
const remembered = 4096

// made are definitions and secrets that are there, so that a replica costs no request for them.
type made struct {
	turn chan struct{} // held while something is looked for or made, so that many replicas do it once

	mu     sync.Mutex
	shared map[string]string // guarded by mu; ARNs of definitions by family and of secrets by name, and the key of names
	own    map[string]kept   // guarded by mu; secrets of one pod, by name
}

// kept is a secret of one pod as it was kept last.
type kept struct {
	text [sha256.Size]byte // what its text sums up to
	arn  string
}

// mine returns the ARN of the secret of one pod: the one that is known if its text is the same, or what keep says. Each time that it is kept is a
// version of it, and Secrets Manager has a hundred.
func (m *made) mine(s secret, keep func() (string, error)) (string, error) {
	sum := sha256.Sum256([]byte(s.text))
	m.mu.Lock()
	known, ok := m.own[s.name]
	m.mu.Unlock()
	if ok && known.text == sum {
		return known.arn, nil
	}
	arn, err := keep()
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.own, s.name) // one that failed may be there all the same
	if err == nil {
		if m.own == nil || len(m.own) >= remembered {
			m.own = map[string]kept{}
		}
		m.own[s.name] = kept{text: sum, arn: arn}
	}
	return arn, err
}

// lose lets the secret of one pod be kept anew: it is removed.
func (m *made) lose(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.own, name)
}

func (m *made) get(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shared[name]
}

func (m *made) set(name, arn string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shared == nil || len(m.shared) >= remembered {
		m.shared = map[string]string{}
	}
	m.shared[name] = arn
}

// forget lets all be looked for again that pods share.
func (m *made) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shared = nil
}

// once returns the ARN of a name: the one that is known, or what find says. One at a time asks.
func (m *made) once(ctx context.Context, name string, find func() (string, error)) (string, error) {
	if arn := m.get(name); arn != "" {
		return arn, nil
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if arn := m.get(name); arn != "" {
		return arn, nil
	}
	arn, err := find()
	if err == nil {
		m.set(name, arn)
	}
	return arn, err
}
