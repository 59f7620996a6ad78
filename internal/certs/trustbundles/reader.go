// SPDX-License-Identifier: Apache-2.0

package trustbundles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certapi"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// keep is how long an answer is cached.
	keep = 30 * time.Second
	// keepNothing is how long the answer is cached that there is no bundle, because a pod waits for the bundle.
	keepNothing = 2 * time.Second
	// forgetAfter is the time after which an unused answer is dropped.
	forgetAfter = 10 * time.Minute
)

var resource = schema.GroupResource{Group: "certificates.k8s.io", Resource: "clustertrustbundle"}

// ErrNothing is the error for a selection without a bundle of the signer, with a kubelet's message.
var ErrNothing = errors.New("combination of signerName and labelSelector matched zero ClusterTrustBundles")

// API lists bundles; certapi.API is an implementation.
type API interface {
	BundleNamed(ctx context.Context, name string) (*certapi.Bundle, error)
	BundlesOf(ctx context.Context, signer, labels string) ([]certapi.Bundle, error)
}

// Reader reads bundles. It is safe for concurrent use.
type Reader struct {
	api API

	mu    sync.Mutex
	slots map[selection]*slot // guarded by mu
}

// selection identifies a request.
type selection struct{ name, signer, labels string }

// slot is the cached answer for one selection. The goroutine that holds busy may send the request, and owns the other fields.
type slot struct {
	used time.Time     // guarded by Reader.mu
	busy chan struct{} // holds one element during a request

	known bool // there was an answer
	found bool // there are bundles
	pem   []byte
	asked time.Time // the last time
}

// New returns a reader on api.
func New(api API) *Reader { return &Reader{api: api, slots: map[selection]*slot{}} }

// Read returns the certificates that a source of a projected volume selects. If there is no bundle, the error has a kubelet's message, and satisfies
// apierrors.IsNotFound for a single bundle. For an optional source, the result is empty instead. After any other error, it is unknown whether the
// bundles exist.
func (r *Reader) Read(ctx context.Context, source *corev1.ClusterTrustBundleProjection) ([]byte, error) {
	wish, nothing, err := selectionOf(source)
	if err != nil {
		return nil, err
	}
	optional := source.Optional != nil && *source.Optional
	if wish == (selection{}) { // a signer without a selector selects no bundles
		if optional {
			return nil, nil
		}
		return nil, nothing
	}
	s := r.slotOf(wish)
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for trust bundles: %w", context.Cause(ctx))
	}
	if err := r.fillSlot(ctx, s, wish); err != nil {
		return nil, err
	}
	if !s.found && !optional {
		return nil, nothing
	}
	return s.pem, nil
}

// selectionOf returns the selection of a source, and the error for an empty result. The zero selection selects
// nothing.
func selectionOf(source *corev1.ClusterTrustBundleProjection) (wish selection, nothing, err error) {
	switch {
	case source.Name != nil && *source.Name != "":
		return selection{name: *source.Name}, fmt.Errorf("while getting ClusterTrustBundle: %w", apierrors.NewNotFound(resource, *source.Name)), nil
	case source.SignerName == nil || *source.SignerName == "":
		return wish, nil, errors.New("ClusterTrustBundle projection requires either name or signerName to be set")
	case source.LabelSelector == nil:
		return wish, ErrNothing, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(source.LabelSelector)
	if err != nil {
		return wish, nil, fmt.Errorf("while parsing label selector: %w", err)
	}
	return selection{signer: *source.SignerName, labels: selector.String()}, ErrNothing, nil
}

// slotOf returns the slot of a selection, and drops unused slots.
func (r *Reader) slotOf(wish selection) *slot {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.slots[wish]
	if s == nil {
		maps.DeleteFunc(r.slots, func(_ selection, s *slot) bool { return now.Sub(s.used) > forgetAfter })
		s = &slot{busy: make(chan struct{}, 1)}
		r.slots[wish] = s
	}
	s.used = now
	return s
}

// fillSlot sends the request, unless the answer is still fresh. If the request fails, the old answer stays.
func (r *Reader) fillSlot(ctx context.Context, s *slot, wish selection) error {
	good := keep
	if s.known && !s.found {
		good = keepNothing
	}
	if s.known && time.Since(s.asked) < good {
		return nil
	}
	found, err := r.askBundles(ctx, wish)
	if err == nil {
		s.known, s.found, s.pem, s.asked = true, len(found) > 0, normalizeBundles(found), time.Now()
		return nil
	}
	if !s.known {
		return fmt.Errorf("read ClusterTrustBundles: %w", err)
	}
	if ctx.Err() == nil {
		s.asked = time.Now() // not earlier than usual, because no caller waits for the answer
		log.G(ctx).WithError(err).Warn("ClusterTrustBundles cannot be read again, they are served as they were last seen")
	}
	return nil
}

func (r *Reader) askBundles(ctx context.Context, wish selection) ([]certapi.Bundle, error) {
	if wish.name == "" {
		return r.api.BundlesOf(ctx, wish.signer, wish.labels)
	}
	one, err := r.api.BundleNamed(ctx, wish.name)
	if err != nil || one == nil {
		return nil, err
	}
	return []certapi.Bundle{*one}, nil
}
