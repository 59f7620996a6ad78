// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	crierrors "k8s.io/cri-api/pkg/errors"
)

// fetchImage pulls with the matching credentials, one after the other, or without credentials if none match. It returns the credentials of the
// successful pull.
func (p *Puller) fetchImage(ctx context.Context, req Request, spec *runtimeapi.ImageSpec) (ref string, with *runtimeapi.AuthConfig, err error) {
	auths, err := p.pullCredentials(ctx, req)
	if err != nil {
		return "", nil, err
	}
	var errs []error
	for _, auth := range auths {
		ref, err := p.cfg.Images.PullImage(ctx, spec, auth, req.Sandbox)
		if err == nil {
			return ref, auth, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 1 {
		return "", nil, errs[0]
	}
	return "", nil, errors.Join(errs...)
}

func (p *Puller) pullCredentials(ctx context.Context, req Request) ([]*runtimeapi.AuthConfig, error) {
	var auths []*runtimeapi.AuthConfig
	if p.cfg.Credentials != nil && len(req.Pod.Spec.ImagePullSecrets) > 0 {
		all, err := p.cfg.Credentials(ctx, req.Pod)
		if err != nil {
			return nil, fmt.Errorf("read the pull secrets of the pod: %w", err)
		}
		for _, c := range all {
			if c.Matches(fullName(req.Image)) {
				auths = append(auths, &runtimeapi.AuthConfig{
					Username: c.Username, Password: c.Password, IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken,
				})
			}
		}
	}
	if len(auths) == 0 {
		auths = append(auths, nil)
	}
	return auths, nil
}

// fullName returns the full name of an image, because credentials are keyed by registry.
func fullName(image string) string {
	name, err := Normalize(image)
	if err != nil {
		return image
	}
	return name
}

// explainError returns reason and message for the status of the container.
func explainError(image string, err error) (reason, message string) {
	for _, kind := range []struct {
		err  error
		text string
	}{
		{crierrors.ErrRegistryUnavailable, "the registry is unavailable"},
		{crierrors.ErrSignatureValidationFailed, "the signature validation failed"},
	} {
		if rest, is := strings.CutPrefix(err.Error(), kind.err.Error()); is {
			return kind.err.Error(), fmt.Sprintf("image pull failed for %s because %s%s", image, kind.text, rest)
		}
	}
	return ErrPull, err.Error()
}

// failure is the last failure of an image, with the time of the next attempt.
type failure struct {
	text  string
	again time.Time
}

// messages are the failures of images, by pod and image, because the images of a pod may change.
type messages struct {
	mu  sync.Mutex
	all map[types.UID]map[string]failure // guarded by mu
}

func (m *messages) get(uid types.UID, image string) failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[uid][image]
}

func (m *messages) put(uid types.UID, image string, f failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[types.UID]map[string]failure{}
	}
	if m.all[uid] == nil {
		m.all[uid] = map[string]failure{}
	}
	m.all[uid][image] = f
}

func (m *messages) drop(uid types.UID, image string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all[uid], image)
	if len(m.all[uid]) == 0 {
		delete(m.all, uid)
	}
}

// dropAll returns the failed images of the pod.
func (m *messages) dropAll(uid types.UID) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	images := slices.Collect(maps.Keys(m.all[uid]))
	delete(m.all, uid)
	return images
}
