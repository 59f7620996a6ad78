// SPDX-License-Identifier: Apache-2.0

package podblobs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azblobs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Pods are the pods of one node.
type Pods struct {
	// Blobs is the container of the pods' blobs.
	Blobs *azblobs.Container
	// Prefix begins the names of all blobs of the node.
	Prefix string
	// Identity is the resource ID of the identity with which machines access the blobs.
	Identity string
	// Every is the interval of the machines' reads of bundles and writes of logs, and of reads of a followed
	// log.
	Every time.Duration

	mu       sync.Mutex
	said     map[types.UID]said          // guarded by mu; the last statuses of pods
	leaving  map[types.UID]int           // guarded by mu; pods whose blobs must be removed, with the number of the call of Leave
	leaves   int                         // guarded by mu; number of calls of Leave
	removing map[types.UID]chan struct{} // guarded by mu; closed after a delete request that may affect the pod's blobs
	released map[types.UID]bool          // guarded by mu; pods whose bundles must be removed

	uploading sync.Mutex
	program   string // guarded by uploading; the name of the program's blob after the upload
}

// said is the last status of a pod.
type said struct {
	etag   string
	status *podjob.Status
}

// New returns the pods of a node. It has no pods yet.
func New(blobs *azblobs.Container, prefix, identity string, every time.Duration) *Pods {
	return &Pods{Blobs: blobs, Prefix: prefix, Identity: identity, Every: every, said: map[types.UID]said{}, leaving: map[types.UID]int{}, removing: map[types.UID]chan struct{}{}, released: map[types.UID]bool{}}
}

// Write writes the bundle of a pod for its machine, for the first time or again.
func (p *Pods) Write(ctx context.Context, uid types.UID, b podjob.Bundle) error {
	data, err := json.Marshal(Package{ContainerURL: p.Blobs.URL, Prefix: p.Prefix, UID: uid, Identity: p.Identity, Every: p.Every, Bundle: b})
	if err != nil {
		return err
	}
	p.mu.Lock()
	delete(p.leaving, uid)
	delete(p.released, uid)
	removed := p.removing[uid]
	p.mu.Unlock()
	if removed != nil {
		select {
		case <-removed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return p.Blobs.Put(ctx, BundleName(p.Prefix, uid), data, nil, false)
}

// Release orders a pod to stop with the grace period of its spec. Flush sends the order.
func (p *Pods) Release(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released[uid] = true
}

// Flush sends the orders of Release: one request removes the bundles of many pods. The claims stay, so the programs apply the grace period of their
// pods.
func (p *Pods) Flush(ctx context.Context) error {
	p.mu.Lock()
	all := slices.Collect(maps.Keys(p.released))
	p.mu.Unlock()
	for some := range slices.Chunk(all, azblobs.MaxBatch) {
		var names []string
		for _, uid := range some {
			names = append(names, BundleName(p.Prefix, uid))
		}
		if err := p.Blobs.DeleteBatch(ctx, names); err != nil {
			return err
		}
		p.mu.Lock()
		for _, uid := range some {
			delete(p.released, uid)
		}
		p.mu.Unlock()
	}
	return nil
}

// Order gives the program of a pod the order to stop. A pod without a bundle was already released.
func (p *Pods) Order(ctx context.Context, uid types.UID, s podjob.Stop) error {
	err := p.Blobs.SetMetadata(ctx, BundleName(p.Prefix, uid), stopMeta(s))
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// Claim returns the claim of a pod's run. It is empty if it lacks the address of the machine.
func (p *Pods) Claim(ctx context.Context, uid types.UID) (c Claim, err error) {
	blob, err := p.Blobs.Get(ctx, claimName(p.Prefix, uid), "", 0)
	if err == nil && json.Unmarshal(blob.Data, &c) != nil {
		c = Claim{} // an earlier version wrote the claim
	}
	return c, err
}

// Read reads the statuses of the node's pods with one list. If a status is too long for the list, Read gets its blob after each change.
func (p *Pods) Read(ctx context.Context, ours func(types.UID) bool) error {
	prefix := statusPrefix(p.Prefix)
	list, err := p.Blobs.List(ctx, prefix, true)
	if err != nil {
		return err
	}
	p.mu.Lock()
	known := slices.Collect(maps.Keys(p.said))
	p.mu.Unlock()
	for _, uid := range known {
		if !ours(uid) {
			p.mu.Lock()
			delete(p.said, uid)
			p.mu.Unlock()
		}
	}
	for _, b := range list {
		uid := types.UID(strings.TrimPrefix(b.Name, prefix))
		p.mu.Lock()
		same := p.said[uid].etag == b.ETag
		p.mu.Unlock()
		if same || !ours(uid) {
			continue
		}
		s, ok := statusOf(b.Metadata)
		if !ok {
			full, err := p.Blobs.Get(ctx, b.Name, "", 0)
			if err != nil {
				return err
			}
			if json.Unmarshal(full.Data, &s) != nil {
				continue // another process wrote it
			}
		}
		p.mu.Lock()
		p.said[uid] = said{b.ETag, &s}
		p.mu.Unlock()
	}
	return nil
}

// Said returns the status of a pod from the last read, or nil if there is none.
func (p *Pods) Said(uid types.UID) *podjob.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said[uid].status
}

// Leave makes Sweep remove the blobs of a pod, unless Write writes the pod again earlier.
func (p *Pods) Leave(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaves++
	p.leaving[uid] = p.leaves
}

// OrphanAge is the minimum age for the removal of an unknown pod's blobs, because the machine of a newer pod may be starting.
const OrphanAge = time.Hour

// Sweep removes the blobs of leaving pods. If known is not nil, it also removes the blobs of unknown pods that an earlier process left.
func (p *Pods) Sweep(ctx context.Context, known func(types.UID) bool) error {
	p.mu.Lock()
	leaving := maps.Clone(p.leaving)
	p.mu.Unlock()
	if len(leaving) == 0 && known == nil {
		return nil
	}
	var found []podBlob
	for _, prefix := range []string{podsPrefix(p.Prefix), statusPrefix(p.Prefix)} {
		list, err := p.Blobs.List(ctx, prefix, false)
		if err != nil {
			return err
		}
		for _, b := range list {
			first, _, _ := strings.Cut(strings.TrimPrefix(b.Name, prefix), "/")
			uid := types.UID(first)
			if leaving[uid] > 0 || known != nil && time.Since(b.Modified) > OrphanAge && !known(uid) {
				found = append(found, podBlob{b.Name, uid})
			}
		}
	}
	for some := range slices.Chunk(found, azblobs.MaxBatch) {
		if err := p.removeBlobs(ctx, some, known); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.leaving, func(uid types.UID, n int) bool { return leaving[uid] == n }) // not a later Leave
	return nil
}

// podBlob is a blob of a pod.
type podBlob struct {
	name string
	uid  types.UID
}

// removeBlobs removes blobs in one request, except for blobs of pods that were written after the list. A Write of these pods waits until the request
// ends.
func (p *Pods) removeBlobs(ctx context.Context, blobs []podBlob, known func(types.UID) bool) error {
	removed := make(chan struct{})
	p.mu.Lock()
	for _, b := range blobs {
		p.removing[b.uid] = removed
	}
	leaving := maps.Clone(p.leaving)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, b := range blobs {
			delete(p.removing, b.uid)
		}
		close(removed)
	}()
	var names []string
	for _, b := range blobs {
		if leaving[b.uid] > 0 || known != nil && !known(b.uid) {
			names = append(names, b.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return p.Blobs.DeleteBatch(ctx, names)
}

// Upload uploads the program for machines unless its blob exists, and returns the name of the blob. The path is "" for the program of this process.
func (p *Pods) Upload(ctx context.Context, path string) (string, error) {
	p.uploading.Lock()
	defer p.uploading.Unlock()
	if p.program != "" {
		return p.program, nil
	}
	f, err := os.Open(cmp.Or(path, "/proc/self/exe"))
	if err != nil {
		return "", fmt.Errorf("the program of machines: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return "", fmt.Errorf("the program of machines: %w", err)
	}
	name := "bin/virtual-kubelet-" + hex.EncodeToString(sum.Sum(nil)[:16])
	has, err := p.Blobs.Head(ctx, name)
	if err != nil && !errdefs.IsNotFound(err) {
		return "", err
	}
	if err != nil || has.Size != size {
		_, err := f.Seek(0, io.SeekStart)
		if err = errors.Join(err, p.Blobs.Upload(ctx, name, f, size)); err != nil {
			return "", err
		}
	}
	p.program = name
	return name, nil
}
