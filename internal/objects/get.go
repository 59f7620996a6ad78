// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// readTimeout bounds a request for one object that no pod references.
const readTimeout = 30 * time.Second

// ConfigMap returns a shared ConfigMap. The caller must not change it. It waits for the first answer of the API server, or until ctx ends. The error
// for a missing ConfigMap satisfies apierrors.IsNotFound; any other error means that the ConfigMap could not be read. Before the first success, the
// watch of a referenced object keeps retrying, and ConfigMap returns the latest error at once.
func (s *Store) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	o, err := s.get(ctx, key{configMaps, namespace, name})
	if err != nil {
		return nil, err
	}
	return o.(*corev1.ConfigMap), nil
}

// Secret returns a Secret, with the same rules as ConfigMap.
func (s *Store) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	o, err := s.get(ctx, key{secrets, namespace, name})
	if err != nil {
		return nil, err
	}
	return o.(*corev1.Secret), nil
}

func (s *Store) get(ctx context.Context, k key) (object, error) {
	if k.name == "" || k.namespace == "" {
		return nil, fmt.Errorf("read %s: a namespace and a name are needed", k)
	}
	for {
		e := s.entryFor(k)
		select {
		case <-e.answered:
		case <-ctx.Done():
		case <-s.stopped:
		}
		if o, final, err := s.answerOf(ctx, e); final {
			return o, err
		}
	}
}

// entryFor returns the entry that answers for k: its watch if a pod references it, and otherwise a single request that concurrent callers share.
func (s *Store) entryFor(k key) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.referrers[k]) > 0 {
		e := s.watches[k]
		if e == nil {
			e = newEntry(s, k)
			s.watches[k] = e
			s.startLocked(e.watchObject)
		}
		return e
	}
	e := s.reads[k]
	if e == nil {
		e = newEntry(s, k)
		s.reads[k] = e
		s.startLocked(e.read)
	}
	return e
}

// answerOf returns the state of e. The state is not final if the watch ended before its first answer, because its last pod is gone. The caller then
// retries.
func (s *Store) answerOf(ctx context.Context, e *entry) (o object, final bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.synced && e.object != nil {
		return e.object, true, nil
	}
	switch {
	case e.synced:
		err = apierrors.NewNotFound(e.key.kind.resource, e.key.name)
	case e.err != nil:
		err = fmt.Errorf("read %s: %w", e.key, e.err)
	case ctx.Err() != nil:
		err = fmt.Errorf("read %s: no answer yet: %w", e.key, context.Cause(ctx))
	case s.hasStopped:
		err = fmt.Errorf("read %s: %w", e.key, errStopped)
	default:
		return nil, false, nil
	}
	e.refused = true
	return nil, true, err
}
