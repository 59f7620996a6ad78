// SPDX-License-Identifier: Apache-2.0

package fakecri

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Image is an image at the registry, or on the machine.
type Image struct {
	// Name is the name in a pod: "busybox", "registry.example/app:v1".
	Name string
	// UID or User is the user of its processes; without either it is root.
	UID  *int64
	User string
	Size uint64
	// Takes is the duration of a pull.
	Takes time.Duration
	// Errors are the errors of the next pulls, one for each pull.
	Errors []error
	// Username and Password are the required login, if there is a password.
	Username, Password string
	// Missing means that the registry does not have the image.
	Missing bool
	// Pinned images must not be removed to save space.
	Pinned bool
}

// image is an image on the machine; guarded by Runtime.mu.
type image struct {
	Image
	id   string
	tags []string
}

func imageID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (i *image) imageName() string {
	if len(i.tags) > 0 {
		return i.tags[0]
	}
	return i.id
}

// digestRef returns the reference of the image by its digest.
func (i *image) digestRef() string {
	name, _, _ := strings.Cut(normalizeName(i.Name), "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name = name[:colon]
	}
	return name + "@" + i.id
}

// normalizeName returns the full name of an image, as runtimes do.
func normalizeName(name string) string {
	if strings.HasPrefix(name, "sha256:") {
		return name
	}
	first, _, path := strings.Cut(name, "/")
	switch {
	case !path:
		name = "docker.io/library/" + name
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		name = "docker.io/" + name
	}
	if !strings.Contains(name, "@") && !strings.Contains(name[strings.LastIndex(name, "/"):], ":") {
		name += ":latest"
	}
	return name
}

// Publish sets the result of pulls of an image. Unpublished images can be pulled too, and run as root.
func (r *Runtime) Publish(i Image) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.registry[normalizeName(i.Name)] = &i
}

// AddImage puts an image on the machine, and publishes it if it is unpublished.
func (r *Runtime) AddImage(i Image) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := normalizeName(i.Name)
	if r.registry[name] == nil {
		r.registry[name] = &i
	}
	r.storeImage(name, i)
}

// storeImage stores an image on the machine. The caller holds r.mu.
func (r *Runtime) storeImage(name string, i Image) *image {
	id := imageID(name)
	if at := strings.Index(name, "@"); at >= 0 {
		id = name[at+1:]
	}
	stored := &image{Image: i, id: id}
	if !strings.Contains(name, "@") {
		stored.tags = []string{name}
	}
	r.images[id] = stored
	return stored
}

// findImage finds an image on the machine by name, digest or identifier. The caller holds r.mu.
func (r *Runtime) findImage(name string) *image {
	if i := r.images[name]; i != nil {
		return i
	}
	name = normalizeName(name)
	for _, i := range r.images {
		if slices.Contains(i.tags, name) || i.digestRef() == name {
			return i
		}
	}
	return nil
}

// PullImage puts an image on the machine, as set by Publish, and returns its reference by digest.
func (c *Client) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	return runCall(ctx, c, "PullImage", spec.GetImage(), func() (string, error) {
		r := c.runtime
		name := normalizeName(spec.GetImage())
		published, restarted, err := r.requestImage(name)
		if published.Takes > 0 {
			timer := time.NewTimer(published.Takes)
			defer timer.Stop()
			if gone := awaitDone(ctx, timer.C, restarted); gone != nil {
				return "", gone
			}
		}
		switch {
		case err != nil:
			return "", err
		case published.Missing:
			return "", status.Errorf(codes.NotFound, "failed to pull and unpack image %q: failed to resolve reference %q: %s: not found", name, name, name)
		case published.Password != "" && (auth.GetUsername() != published.Username || auth.GetPassword() != published.Password):
			return "", status.Errorf(codes.Unknown, "failed to pull and unpack image %q: failed to resolve reference %q: pull access denied, repository does not exist or may require authorization", name, name)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.storeImage(name, published).digestRef(), nil
	})
}

// requestImage returns the registry's image of that name, and the error of the next pull.
func (r *Runtime) requestImage(name string) (Image, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	published := r.registry[name]
	if published == nil {
		return Image{Name: name}, r.restarted, nil
	}
	return *published, r.restarted, popError(&published.Errors)
}

// RemoveImage removes an image. A missing image is no error.
func (c *Client) RemoveImage(ctx context.Context, spec *runtimeapi.ImageSpec) error {
	return c.runAction(ctx, "RemoveImage", spec.GetImage(), func() error {
		c.runtime.mu.Lock()
		defer c.runtime.mu.Unlock()
		if i := c.runtime.findImage(spec.GetImage()); i != nil {
			delete(c.runtime.images, i.id)
		}
		return nil
	})
}

// ImageStatus returns an image of the machine. A missing image is a nil image and no error.
func (c *Client) ImageStatus(ctx context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	return runCall(ctx, c, "ImageStatus", spec.GetImage(), func() (*runtimeapi.ImageStatusResponse, error) {
		c.runtime.mu.Lock()
		defer c.runtime.mu.Unlock()
		i := c.runtime.findImage(spec.GetImage())
		if i == nil {
			return &runtimeapi.ImageStatusResponse{}, nil
		}
		return &runtimeapi.ImageStatusResponse{Image: i.imageMessage()}, nil
	})
}

func (i *image) imageMessage() *runtimeapi.Image {
	p := &runtimeapi.Image{
		Id: i.id, RepoTags: slices.Clone(i.tags), RepoDigests: []string{i.digestRef()}, Size: i.Size, Username: i.User, Pinned: i.Pinned,
		Spec: &runtimeapi.ImageSpec{Image: i.imageName()},
	}
	if i.UID != nil {
		p.Uid = &runtimeapi.Int64Value{Value: *i.UID}
	} else if i.User == "" {
		p.Uid = &runtimeapi.Int64Value{}
	}
	return p
}

// ListImages returns the images of the machine.
func (c *Client) ListImages(ctx context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return runCall(ctx, c, "ListImages", "", func() ([]*runtimeapi.Image, error) {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		var list []*runtimeapi.Image
		only := filter.GetImage().GetImage()
		for _, i := range r.images {
			if only == "" || r.findImage(only) == i {
				list = append(list, i.imageMessage())
			}
		}
		slices.SortFunc(list, func(a, b *runtimeapi.Image) int { return strings.Compare(a.Id, b.Id) })
		return list, nil
	})
}

// ImageFsInfo returns the disk usage of the images.
func (c *Client) ImageFsInfo(ctx context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return runCall(ctx, c, "ImageFsInfo", "", func() (*runtimeapi.ImageFsInfoResponse, error) {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		var used uint64
		for _, i := range r.images {
			used += i.Size
		}
		return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: []*runtimeapi.FilesystemUsage{{
			Timestamp: nowNanos(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: "/"},
			UsedBytes: &runtimeapi.UInt64Value{Value: used}, InodesUsed: &runtimeapi.UInt64Value{Value: uint64(len(r.images))},
		}}}, nil
	})
}
