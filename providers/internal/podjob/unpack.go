// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageStore stores the images of a job's containers.
type imageStore interface {
	cri.ImageManagerService
	// find returns a pulled image; or nil if there is none of that name.
	find(ctx context.Context, text string) (*Image, error)
	// unpack returns the root file system of an image, which must not be changed.
	unpack(ctx context.Context, id string) (dir string, err error)
	// clean makes the unpacked files removable.
	clean()
}

var (
	_ imageStore = (*podman)(nil)
	_ imageStore = (*unpacker)(nil)
)

// unpacker pulls images itself, and unpacks them into the directory of the job. It needs no program of the machine except tar, and no privileges.
type unpacker struct {
	images
	pull    PullFunc
	pulling chan struct{} // holds one value during a pull
	usual   sync.Once     // restores the default garbage collection once
	mu      sync.Mutex
	names   map[string]*Image // guarded by mu; keyed by the names in pods and by ID
}

func newUnpacker(dir string, pull PullFunc) *unpacker {
	if pull == nil {
		pull = PullImage
	}
	return &unpacker{images: images{dir}, pull: pull, pulling: make(chan struct{}, 1), names: map[string]*Image{}}
}

func (u *unpacker) find(_ context.Context, text string) (*Image, error) {
	ref, err := fullName(text)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.names[ref], nil
}

func (u *unpacker) root(id string) string { return filepath.Join(u.dir, "images", id) }

func (u *unpacker) unpack(_ context.Context, id string) (string, error) { return u.root(id), nil }

func (u *unpacker) clean() { makeRemovable(filepath.Join(u.dir, "images")) }

// ImageStatus describes an image pulled by the job.
func (u *unpacker) ImageStatus(ctx context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	found, err := u.find(ctx, spec.GetImage())
	if err != nil || found == nil {
		return &runtimeapi.ImageStatusResponse{}, err
	}
	return &runtimeapi.ImageStatusResponse{Image: found.cri()}, nil
}

// PullImage pulls an image, and unpacks it.
func (u *unpacker) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	text, err := fullName(spec.GetImage())
	if err != nil {
		return "", err
	}
	var login Login
	if auth != nil {
		login = Login{Username: auth.GetUsername(), Password: auth.GetPassword(), IdentityToken: auth.GetIdentityToken(), RegistryToken: auth.GetRegistryToken()}
	}
	select {
	case u.pulling <- struct{}{}:
		defer func() { <-u.pulling }()
	case <-ctx.Done():
		return "", status.FromContextError(fmt.Errorf("pull image %s: another one is pulled: %w", text, ctx.Err())).Err()
	}
	u.usual.Do(usualHeap) // a pull may take long, and allocates much short-lived memory
	of, files, err := u.pull(ctx, text, login)
	if err != nil {
		return "", err
	}
	defer files.Close()
	u.mu.Lock()
	known := u.names[of.ID]
	u.mu.Unlock()
	if known == nil {
		if err := u.extract(ctx, files, u.root(of.ID)); err != nil {
			return "", pullError(text, err)
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.names[text], u.names[of.ID] = &of, &of
	return "sha256:" + of.ID, nil
}

// extract unpacks an image into a directory, or leaves no directory on failure. tar writes nothing outside of it.
func (u *unpacker) extract(ctx context.Context, files io.Reader, dir string) (err error) {
	defer func() {
		if err != nil {
			makeRemovable(dir)
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	makeRemovable(dir)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil { //nolint:gosec // it is a root for others
		return err
	}
	cmd := exec.CommandContext(ctx, "tar", "-x", "--numeric-owner", "-C", dir)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = files, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("unpack: %w: %.300s", err, stderr.Bytes())
	}
	return nil
}
