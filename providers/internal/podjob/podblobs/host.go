// SPDX-License-Identifier: Apache-2.0

package podblobs

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azblobs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// ErrClaimed means that an earlier run has claimed the pod.
var ErrClaimed = errors.New("an earlier run of this program runs the pod, or has run it: this run does nothing")

// place is the machine's access to the blobs of its pod.
type place struct {
	Package
	blobs        *azblobs.Container
	claim        Claim
	logs         *uploader
	job, machine string
	own          bool // the claim succeeded; set before other goroutines start

	mu     sync.Mutex
	etag   string        // guarded by mu; of the last bundle read
	looked time.Time     // guarded by mu
	stop   *podjob.Stop  // guarded by mu
	bundle podjob.Bundle // guarded by mu
}

var _ podjob.Host = (*place)(nil)

func newPlace(p Package, c *azblobs.Container, logDir, job, machine string) *place {
	return &place{Package: p, blobs: c, job: job, machine: machine, claim: newClaim(), bundle: p.Bundle, logs: newUploader(c, func(container string) string { return logPrefix(p.Prefix, p.UID, container) }, logDir)}
}

// newClaim returns the claim of this run.
func newClaim() Claim {
	c := Claim{Nonce: rand.Text()}
	c.Program, _ = filepath.Abs(ProgramFile) // without it, the machine is not reachable by SSH
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		if key, err := os.ReadFile("/etc/ssh/ssh_host_" + kind + "_key.pub"); err == nil {
			c.HostKey = strings.TrimSpace(string(key))
			break
		}
	}
	return c
}

// Claim implements podjob.Host: only one run of the task can make the blob. The response to a successful attempt may be lost.
func (p *place) Claim(ctx context.Context) error {
	name := claimName(p.Prefix, p.UID)
	data, err := json.Marshal(p.claim)
	if err != nil {
		return err
	}
	err = p.blobs.Put(ctx, name, data, nil, true)
	for wait := time.Second; err != nil && !azblobs.Has(err, http.StatusConflict, http.StatusPreconditionFailed) && ctx.Err() == nil; wait *= 2 {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			err = p.blobs.Put(ctx, name, data, nil, true)
		}
	}
	if !azblobs.Has(err, http.StatusConflict, http.StatusPreconditionFailed) {
		p.own = err == nil
		return err
	}
	has, err := p.blobs.Get(ctx, name, "", 0)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(has.Data, data):
		return ErrClaimed
	}
	p.own = true
	return nil
}

// readBundle reads the bundle again, unless it was read a moment ago. A missing bundle is an order to stop.
func (p *place) readBundle(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.looked) < p.Every/2 {
		return nil
	}
	b, err := p.blobs.Get(ctx, BundleName(p.Prefix, p.UID), p.etag, 0)
	switch {
	case errdefs.IsNotFound(err):
		if err := p.takeRelease(ctx); err != nil {
			return err
		}
	case err != nil:
		return err
	case b.Data != nil:
		var next Package
		if err := json.Unmarshal(b.Data, &next); err != nil {
			return fmt.Errorf("read %s: %w", PackageFile, err)
		}
		p.bundle, p.etag = next.Bundle, b.ETag
		if stop := StopOf(b.Metadata); stop != nil { // a renewal does not cancel a stop order
			p.stop = stop
		}
	}
	p.looked = time.Now()
	return nil
}

// takeRelease handles a missing bundle as a stop order: with the grace period of the pod if the claim still exists, and without one if the node has
// removed all blobs of the pod. The caller holds mu.
func (p *place) takeRelease(ctx context.Context) error {
	_, err := p.blobs.Head(ctx, claimName(p.Prefix, p.UID))
	p.stop = &podjob.Stop{}
	switch grace := p.bundle.Pod.Spec.TerminationGracePeriodSeconds; {
	case errdefs.IsNotFound(err):
		return nil
	case err == nil && grace != nil:
		p.stop.GraceSeconds = *grace
	}
	return err
}

// Bundle implements podjob.Host.
func (p *place) Bundle(ctx context.Context) (podjob.Bundle, error) {
	err := p.readBundle(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bundle, err
}

// StopOrder implements podjob.Host.
func (p *place) StopOrder(ctx context.Context) (*podjob.Stop, error) {
	err := p.readBundle(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop, err
}

// WriteStatus implements podjob.Host. It first uploads all logs so far.
func (p *place) WriteStatus(ctx context.Context, s podjob.Status) error {
	if err := p.logs.uploadNew(ctx); err != nil {
		return err
	}
	data, meta, err := Written(s)
	if err != nil {
		return err
	}
	return p.blobs.Put(ctx, StatusName(p.Prefix, p.UID), data, meta, false)
}

// reportFailure writes a failed start of the pod, if this run may write statuses.
func (p *place) reportFailure(ctx context.Context, cause error) error {
	if !p.own {
		return nil
	}
	return p.WriteStatus(ctx, podjob.Status{Ended: true, Job: p.job, Host: p.machine, Pod: corev1.PodStatus{
		Phase: corev1.PodFailed, Reason: "TaskFailed", Message: "the program of the pod: " + cause.Error(),
	}})
}
