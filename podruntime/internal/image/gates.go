// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"strings"
	"sync"
)

// gates limit the concurrent pulls from each registry separately, because an unresponsive registry would otherwise block all pulls.
type gates struct {
	mu  sync.Mutex
	all map[string]*gate // guarded by mu; keyed by registry, while the gate is in use
}

type gate struct {
	slots chan struct{}
	users int // guarded by the mu of its gates: pulls in progress and waiting pulls
}

// enterGate waits until one more pull from the registry may start. The caller calls leave after the pull.
func (g *gates) enterGate(ctx context.Context, registry string) (leave func(), err error) {
	g.mu.Lock()
	if g.all == nil {
		g.all = map[string]*gate{}
	}
	at := g.all[registry]
	if at == nil {
		at = &gate{slots: make(chan struct{}, parallel)}
		g.all[registry] = at
	}
	at.users++
	g.mu.Unlock()
	select {
	case at.slots <- struct{}{}:
		return func() { <-at.slots; g.leaveGate(registry) }, nil
	case <-ctx.Done():
		g.leaveGate(registry)
		return nil, ctx.Err()
	}
}

func (g *gates) leaveGate(registry string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all[registry].users--; g.all[registry].users == 0 {
		delete(g.all, registry)
	}
}

// registryHost returns the host in an image's name, or "".
func registryHost(image string) string {
	if host, _, has := strings.Cut(image, "/"); has && isHost(host) {
		return host
	}
	return ""
}
