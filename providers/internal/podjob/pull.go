// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/imageref"
)

var imageID = regexp.MustCompile(`^(sha256:)?[0-9a-f]{64}$`)

// fullName returns the full name of an image, by the rules of Kubernetes: podman would look for a short name
// elsewhere.
func fullName(text string) (string, error) {
	if imageID.MatchString(text) {
		return strings.TrimPrefix(text, "sha256:"), nil
	}
	ref, err := imageref.Parse(text)
	if err != nil {
		return "", status.Errorf(codes.InvalidArgument, "image %q: %v", text, err)
	}
	if rest, ok := strings.CutPrefix(ref.Name(), name.DefaultRegistry); ok {
		return "docker.io" + rest, nil
	}
	return ref.Name(), nil
}

// PullImage pulls an image from its registry.
func PullImage(ctx context.Context, text string, login Login) (of Image, files io.ReadCloser, err error) {
	ref, err := imageref.Parse(text)
	if err != nil {
		return of, nil, status.Errorf(codes.InvalidArgument, "image %q: %v", text, err)
	}
	auth := authn.Anonymous
	if login != (Login{Registry: login.Registry}) {
		auth = authn.FromConfig(authn.AuthConfig{Username: login.Username, Password: login.Password, IdentityToken: login.IdentityToken, RegistryToken: login.RegistryToken})
	}
	got, err := remote.Image(ref, remote.WithContext(ctx), remote.WithTransport(encrypted{remote.DefaultTransport}), remote.WithAuth(auth), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: goruntime.GOARCH}))
	if err != nil {
		return of, nil, pullError(text, err)
	}
	found, err := describeImage(ref, got)
	if err != nil {
		return of, nil, pullError(text, err)
	}
	return *found, &filesOf{image: got}, nil
}

// filesOf are the files of an image without devices, because containers use the machine's. The archive is readable by every version of tar.
type filesOf struct {
	image v1.Image
	from  io.Closer
	pipe  *io.PipeReader
}

// Read implements io.Reader.
func (f *filesOf) Read(b []byte) (int, error) {
	if f.pipe == nil {
		from := mutate.Extract(f.image)
		out, in := io.Pipe()
		f.from, f.pipe = from, out
		go func() { _ = in.CloseWithError(copyPlain(in, from)) }()
	}
	return f.pipe.Read(b)
}

// Close implements io.Closer.
func (f *filesOf) Close() error {
	if f.pipe == nil {
		return nil
	}
	return errors.Join(f.pipe.Close(), f.from.Close())
}

// copyPlain copies an archive without the entries that only some versions of tar understand.
func copyPlain(to io.Writer, from io.Reader) error {
	in, out := tar.NewReader(from), tar.NewWriter(to)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out.Close()
		}
		if err != nil {
			return err
		}
		if strings.HasPrefix(path.Clean("/"+h.Name), "/dev/") {
			continue
		}
		h.Format, h.PAXRecords, h.AccessTime, h.ChangeTime, h.ModTime = tar.FormatGNU, nil, time.Time{}, time.Time{}, h.ModTime.Truncate(time.Second)
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil { //nolint:gosec // whoever reads it has a disk of some size
			return err
		}
	}
}

// encrypted refuses plain HTTP except to this machine, because the library also tries HTTP for private addresses, and would send credentials.
type encrypted struct{ under http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (e encrypted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !Loopback(r.URL.Hostname()) {
		return nil, fmt.Errorf("%s://%s: want https: by http only a registry of this machine is asked", r.URL.Scheme, r.URL.Host)
	}
	return e.under.RoundTrip(r)
}

// describeImage returns the description of an image.
func describeImage(ref name.Reference, got v1.Image) (*Image, error) {
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
	of := &Image{ID: id.Hex, RepoTags: []string{ref.Name()}, RepoDigests: []string{ref.Context().Name() + "@" + digest.String()}}
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

// pullError returns the reason why an image is not available, with the registry's message. The message has no credentials, because those are in
// headers.
func pullError(text string, err error) error {
	code := codes.Unknown
	var refused *transport.Error
	if errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden) {
		code = codes.PermissionDenied
	}
	said := strings.Join(strings.Fields(err.Error()), " ")
	return status.Errorf(code, "pull image %s: %.500s", text, said)
}
