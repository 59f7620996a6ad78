// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// sweepAgain is the delay after a failed removal of a registry.
const sweepAgain = time.Minute

// registry is the create request of a registry, which is a login for images.
type registry struct {
	Name     string `json:"name"`
	Domain   string `json:"domain"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

// logins makes and removes the registries of this node. Pods with the same login share one. A registry may be removed only if no container refers to
// it. Otherwise, Zun fails to read the container and all lists.
type logins struct {
	client *client
	prefix string        // prefix of the names of this node's registries
	salt   string        // salt of the names, which are visible to the whole project
	keep   time.Duration // from the last use of a registry until lists show the container that refers to it
	first  time.Time     // when to look for the registries of earlier processes

	mu    sync.Mutex           // held during requests, so that no pod uses a registry that is being removed
	used  map[string]time.Time // guarded by mu; the last use of each registry, by its ID
	all   bool                 // guarded by mu; used includes the registries of earlier processes
	after time.Time            // guarded by mu; when to retry a removal
}

func newLogins(c *client, owner identity.Owner, keep, earlier time.Duration) *logins {
	return &logins{
		client: c, prefix: "vk-" + identity.Hash(owner.Cluster, owner.Node) + "-", salt: rand.Text(), keep: keep, first: time.Now().Add(earlier),
		used: map[string]time.Time{},
	}
}

// registryOf returns the registry for the image of a pod, or false if the pod needs none. Zun supports only a name and a password.
func (l *logins) registryOf(in *service.Inputs) (registry, bool) {
	with, needed := in.RegistryLogin(in.Pod.Spec.Containers[0].Image)
	name := l.prefix + identity.Hash(l.salt, with.Registry, with.Username, with.Password)
	return registry{Name: name, Domain: with.Registry, Username: with.Username, Password: with.Password}, needed
}

// useRegistry returns the ID of the registry for the image of a pod, or "" if the pod needs none. The caller calls release after
// the create.
func (l *logins) useRegistry(ctx context.Context, in *service.Inputs) (id string, err error) {
	wanted, needed := l.registryOf(in)
	if !needed {
		return "", nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.client.eachItem(ctx, registries, url.Values{"name": {wanted.Name}}, func(r container) { id = r.UUID }); err != nil {
		return "", err
	}
	if id == "" {
		var made struct{ Registry struct{ UUID string } }
		if _, err := l.client.call(ctx, "create registry", http.MethodPost, registries, nil, map[string]any{"registry": wanted}, &made); err != nil {
			l.all = false // Zun may have made the registry
			return "", err
		}
		id = made.Registry.UUID
	}
	l.used[id] = time.Now().Add(callTimeout)
	return id, nil
}

// releaseRegistry records that the create with a registry has ended.
func (l *logins) releaseRegistry(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.used[id]; known {
		l.used[id] = time.Now()
	}
}

// sweepRegistries removes the registries that no container refers to. named has the registries of all containers in a list. The next list retries a
// failed removal.
func (l *logins) sweepRegistries(ctx context.Context, named map[string]bool) {
	if !l.mu.TryLock() {
		return // a pod gets its registry
	}
	defer l.mu.Unlock()
	now := time.Now()
	if now.Before(l.after) {
		return
	}
	var err error
	if !l.all && !now.Before(l.first) {
		err = l.client.eachItem(ctx, registries, nil, func(r container) {
			if _, known := l.used[r.UUID]; !known && strings.HasPrefix(r.Name, l.prefix) {
				l.used[r.UUID] = time.Time{}
			}
		})
		l.all = err == nil
	}
	for id, used := range l.used {
		if err != nil || named[id] || now.Sub(used) < l.keep {
			continue
		}
		_, err = l.client.call(ctx, "delete registry", http.MethodDelete, registries+"/"+id, nil, nil, nil)
		if err == nil || errdefs.IsNotFound(err) {
			delete(l.used, id)
			err = nil
		}
	}
	if err != nil && ctx.Err() == nil {
		l.after = now.Add(sweepAgain)
		log.G(ctx).WithError(err).Warn("The registries of removed pods are not removed yet")
	}
}
