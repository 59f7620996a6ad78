// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// podman is an imageStore that uses the program podman of the machine. Podman pulls images into its own storage, which all jobs of the user share.
// The root file system of an image is copied once per job. The copy needs no privileges, and a killed job leaves only a directory.
type podman struct {
	images
	mu       sync.Mutex        // held while an image is unpacked
	unpacked map[string]string // guarded by mu: the directories, by the id of the image
}

func newPodman(dir string) *podman {
	return &podman{images: images{dir}, unpacked: map[string]string{}}
}

// refusedByPodman is an error with podman's message.
type refusedByPodman struct{ said string }

func (e refusedByPodman) Error() string { return "podman: " + e.said }

// podmanCommand returns a podman command that is killed with this process.
func podmanCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "podman", args...)
	// The job's own directory is only for volumes. Podman keeps its state, shared by all jobs, in the user's directory.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "XDG_RUNTIME_DIR=") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// run returns the output of podman.
func (*podman) run(ctx context.Context, args ...string) (string, error) {
	var out, said bytes.Buffer
	cmd := podmanCommand(ctx, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		text := strings.Join(strings.Fields(said.String()), " ")
		return "", refusedByPodman{text[max(0, len(text)-500):]}
	}
	if err != nil {
		return "", fmt.Errorf("containers of this machine are made with podman: %w", err)
	}
	return strings.TrimSpace(out.String()), nil
}

// find returns an image of the node; or nil if the machine has none of that name.
func (p *podman) find(ctx context.Context, text string) (*Image, error) {
	ref, err := fullName(text)
	if err != nil {
		return nil, err
	}
	var refused refusedByPodman
	if _, err := p.run(ctx, "image", "exists", ref); errors.As(err, &refused) && refused.said == "" {
		return nil, nil // only the exit code shows that the image is missing
	} else if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	out, err := p.run(ctx, "image", "inspect", "--format=json", ref)
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	var found []Image
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) != 1 {
		return nil, status.Errorf(codes.Unknown, "podman: image %s: %d answers, %v", ref, len(found), err)
	}
	return &found[0], nil
}

// ImageStatus describes an image on the machine.
func (p *podman) ImageStatus(ctx context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	found, err := p.find(ctx, spec.GetImage())
	if err != nil || found == nil {
		return &runtimeapi.ImageStatusResponse{}, err
	}
	return &runtimeapi.ImageStatusResponse{Image: found.cri()}, nil
}

// cri returns an image in the form of the CRI.
func (i *Image) cri() *runtimeapi.Image {
	is := &runtimeapi.Image{
		Id: "sha256:" + i.ID, RepoTags: i.RepoTags, RepoDigests: i.RepoDigests, Size: uint64(max(0, i.Size)), Spec: &runtimeapi.ImageSpec{Image: "sha256:" + i.ID}, //nolint:gosec // it is not negative
	}
	user, _, _ := strings.Cut(i.Config.User, ":")
	number, err := strconv.ParseInt(user, 10, 64)
	switch {
	case os.Getuid() != 0: // without root, this user is the only one
		is.Uid = &runtimeapi.Int64Value{Value: int64(os.Getuid())}
	case user == "" || err == nil:
		is.Uid = &runtimeapi.Int64Value{Value: number}
	default:
		is.Username = user
	}
	return is
}

// PullImage pulls an image with podman. During the pull, the credentials are in a file that only this user can read.
func (p *podman) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	ref, err := fullName(spec.GetImage())
	if err != nil {
		return "", err
	}
	args := []string{"pull", "--quiet"}
	if auth != nil {
		file, err := p.authFile(ref, auth)
		if err != nil {
			return "", err
		}
		defer os.Remove(file)
		args = append(args, "--authfile="+file)
	}
	id, err := p.run(ctx, append(args, "docker://"+ref)...)
	if err != nil {
		return "", status.Error(codes.Unknown, err.Error())
	}
	lines := strings.Fields(id)
	if len(lines) == 0 || !imageID.MatchString(lines[len(lines)-1]) {
		return "", status.Errorf(codes.Unknown, "podman: pull %s: %q is no id of an image", ref, id)
	}
	return "sha256:" + strings.TrimPrefix(lines[len(lines)-1], "sha256:"), nil
}

// authFile writes the login in podman's format.
func (p *podman) authFile(ref string, auth *runtimeapi.AuthConfig) (string, error) {
	if auth.GetRegistryToken() != "" {
		return "", status.Error(codes.InvalidArgument, "podman takes no registry token: use a user and a password")
	}
	entry := map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(auth.GetUsername() + ":" + auth.GetPassword()))}
	if auth.GetIdentityToken() != "" {
		entry["identitytoken"] = auth.GetIdentityToken()
	}
	host, _, _ := strings.Cut(ref, "/")
	path := filepath.Join(p.dir, "auth-"+newID())
	data, err := json.Marshal(map[string]any{"auths": map[string]any{host: entry}})
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, data, 0o600)
}

// unpack returns the root file system of an image, which must not be changed.
func (p *podman) unpack(ctx context.Context, id string) (dir string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if dir := p.unpacked[id]; dir != "" {
		return dir, nil
	}
	dir = filepath.Join(p.dir, "images", id)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil { //nolint:gosec // it is a root for others
		return "", err
	}
	// The container is never started, and needs no network.
	container, err := p.run(ctx, "create", "--pull=never", "--network=none", "--label=virtual-kubelet=podjob", id, "/none")
	if err != nil {
		return "", err
	}
	defer func() {
		_, rmErr := p.run(context.WithoutCancel(ctx), "rm", "--force", container)
		err = errors.Join(err, rmErr)
	}()
	export, extract := podmanCommand(ctx, "export", container), exec.CommandContext(ctx, "tar", tarFlags(dir)...)
	var exportErr, extractErr bytes.Buffer
	export.Stderr, extract.Stderr = &exportErr, &extractErr
	if extract.Stdin, err = export.StdoutPipe(); err != nil {
		return "", err
	}
	if err := export.Start(); err != nil {
		return "", err
	}
	err = extract.Run()
	if err = errors.Join(err, export.Wait()); err != nil {
		return "", fmt.Errorf("unpack image %s: %w: %.300s %.300s", id, err, exportErr.Bytes(), extractErr.Bytes())
	}
	p.unpacked[id] = dir
	return dir, nil
}

// clean implements imageStore.
func (p *podman) clean() { makeRemovable(filepath.Join(p.dir, "images")) }

// makeRemovable makes the contents of a directory removable, including directories that their owner may not write
// to.
func makeRemovable(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // it is a directory, and about to be removed
		}
		return nil
	})
}

// tarFlags returns the flags to unpack an image. Devices are left out, because containers use the machine's.
func tarFlags(dir string) []string {
	return []string{"-x", "--numeric-owner", "--exclude=dev/*", "-C", dir}
}
