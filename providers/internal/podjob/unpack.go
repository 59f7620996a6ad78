// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/imageref"
)

// imageStore has the images of a job's containers.
type imageStore interface {
	cri.ImageManagerService
	// find returns an image that is there; nil if there is none of that name.
	find(ctx context.Context, text string) (*image, error)
	// unpack returns the root file system of an image, which nobody changes.
	unpack(ctx context.Context, id string) (dir string, err error)
	// clean makes what was unpacked removable.
	clean()
}

var (
	_ imageStore = (*podman)(nil)
	_ imageStore = (*unpacker)(nil)
)

// unpacker pulls images itself, and unpacks them into the directory of the job: it needs no program of the site but tar, and no rights.
type unpacker struct {
	images
	pulling chan struct{} // has one while an image is pulled
	usual   sync.Once     // the heap has the usual room
	mu      sync.Mutex
	names   map[string]*image // guarded by mu: by what pods call them, and by their ids
}

func newUnpacker(dir string) *unpacker {
	return &unpacker{images: images{dir}, pulling: make(chan struct{}, 1), names: map[string]*image{}}
}

func (u *unpacker) find(_ context.Context, text string) (*image, error) {
	ref, err := reference(text)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.names[ref], nil
}

func (u *unpacker) root(id string) string { return filepath.Join(u.dir, "images", id) }

func (u *unpacker) unpack(_ context.Context, id string) (string, error) { return u.root(id), nil }

func (u *unpacker) clean() { removable(filepath.Join(u.dir, "images")) }

// ImageStatus tells of an image that the job has pulled.
func (u *unpacker) ImageStatus(ctx context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	found, err := u.find(ctx, spec.GetImage())
	if err != nil || found == nil {
		return &runtimeapi.ImageStatusResponse{}, err
	}
	return &runtimeapi.ImageStatusResponse{Image: found.cri()}, nil
}

// PullImage pulls an image, and unpacks it.
func (u *unpacker) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	text, err := reference(spec.GetImage())
	if err != nil {
		return "", err
	}
	ref, err := imageref.Parse(text)
	if err != nil {
		return "", status.Errorf(codes.InvalidArgument, "image %q: %v", spec.GetImage(), err)
	}
	login := authn.Anonymous
	if auth != nil {
		login = authn.FromConfig(authn.AuthConfig{
			Username: auth.GetUsername(), Password: auth.GetPassword(), IdentityToken: auth.GetIdentityToken(), RegistryToken: auth.GetRegistryToken(),
		})
	}
	select {
	case u.pulling <- struct{}{}:
		defer func() { <-u.pulling }()
	case <-ctx.Done():
		return "", status.FromContextError(fmt.Errorf("pull image %s: another one is pulled: %w", text, ctx.Err())).Err()
	}
	u.usual.Do(usualHeap) // a pull may take long, and makes much that does not stay
	got, err := remote.Image(ref, remote.WithContext(ctx), remote.WithTransport(encrypted{remote.DefaultTransport}), remote.WithAuth(login), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: goruntime.GOARCH}))
	if err != nil {
		return "", pullError(text, err)
	}
	of, err := described(ref, got)
	if err != nil {
		return "", pullError(text, err)
	}
	u.mu.Lock()
	known := u.names[of.ID]
	u.mu.Unlock()
	if known == nil {
		if err := extract(ctx, got, u.root(of.ID)); err != nil {
			return "", pullError(text, err)
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.names[text], u.names[of.ID] = of, of
	return "sha256:" + of.ID, nil
}

// encrypted sends nothing by http but to this machine: the library tries that for private addresses too, and credentials would go with it.
type encrypted struct{ under http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (e encrypted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !Loopback(r.URL.Hostname()) {
		return nil, fmt.Errorf("%s://%s: want https: by http only a registry of this machine is asked", r.URL.Scheme, r.URL.Host)
	}
	return e.under.RoundTrip(r)
}

// described is what an image says of itself.
func described(ref name.Reference, got v1.Image) (*image, error) {
	file, err := got.ConfigFile()
	if err != nil {
		return nil, err
	}
	id, err := got.ConfigName()
	if err != nil {
		return nil, err
	}
	digest, err := got.Digest()
	if err != nil {
		return nil, err
	}
	of := &image{ID: id.Hex, RepoTags: []string{ref.Name()}, RepoDigests: []string{ref.Context().Name() + "@" + digest.String()}}
	layers, err := got.Layers()
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		size, err := l.Size()
		if err != nil {
			return nil, err
		}
		of.Size += size
	}
	c := &of.Config
	c.User, c.Env, c.Entrypoint, c.Cmd, c.WorkingDir = file.Config.User, file.Config.Env, file.Config.Entrypoint, file.Config.Cmd, file.Config.WorkingDir
	return of, nil
}

// extract unpacks an image into a directory: whole, or not at all. tar lets nothing out of it.
func extract(ctx context.Context, got v1.Image, dir string) (err error) {
	defer func() {
		if err != nil {
			removable(dir)
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	removable(dir)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil { //nolint:gosec // it is a root for others
		return err
	}
	files := mutate.Extract(got)
	defer files.Close()
	cmd := exec.CommandContext(ctx, "tar", tarFlags(dir)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = files, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("unpack: %w: %.300s", err, stderr.Bytes())
	}
	return nil
}

// tarFlags unpack an image. The devices are those of the machine.
func tarFlags(dir string) []string {
	return []string{"-x", "--numeric-owner", "--exclude=dev/*", "-C", dir}
}

// pullError says why an image cannot be had, in the words of the registry. It has no credentials: those are in headers.
func pullError(text string, err error) error {
	code := codes.Unknown
	var refused *transport.Error
	if errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden) {
		code = codes.PermissionDenied
	}
	said := strings.Join(strings.Fields(err.Error()), " ")
	return status.Errorf(code, "pull image %s: %.500s", text, said)
}
