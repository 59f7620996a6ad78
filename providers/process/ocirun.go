// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/bundle"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// ociRuntime runs containers with runsc, runc or crun. It is nil with isolation none.
type ociRuntime struct {
	oci.Runtime
	// name is the value of Config.Isolation.
	name string
	// version is the version of the program. open are its unfixed vulnerabilities; they are valid only if known
	// is true.
	version string
	open    []oci.Vulnerability
	known   bool
	// bundles is the directory of the OCI bundles of running containers, on a file system in memory.
	bundles string
}

// findRuntime returns the runtime of the configuration.
func findRuntime(ctx context.Context, config Config) (*ociRuntime, error) {
	fail := func(err error) (*ociRuntime, error) {
		return nil, fmt.Errorf("isolation %s: %w", config.Isolation, err)
	}
	if runtime.GOOS != "linux" {
		return fail(fmt.Errorf("it needs Linux; isolation: none runs programs of this machine (%s)", runtime.GOOS))
	}
	if os.Geteuid() != 0 && config.Isolation != IsolationGVisor {
		return fail(errors.New("it needs a daemon with the rights of root; isolation: gvisor needs none"))
	}
	name, path, hint := config.Isolation, config.RuntimePath, "install the package "+config.Isolation
	if config.Isolation == IsolationGVisor {
		name, path, hint = runsc, cmp.Or(path, besideThis(runsc)), guestHint
	}
	program, version, err := oci.Find(ctx, name, path, hint)
	if err != nil {
		return fail(err)
	}
	log.G(ctx).WithFields(log.Fields{"program": program, "version": version}).Info("process provider: containers are made by a runtime")
	open, known := oci.FindVulnerabilities(ctx, program, version)
	if err := refuseVulnerable(program, version, open, known); err != nil {
		if config.RequirePatchedRuntime {
			return fail(fmt.Errorf("requirePatchedRuntime: %w", err))
		}
		log.G(ctx).WithError(err).Warn("process provider: the runtime is not known to be patched; it is used, since requirePatchedRuntime is not set")
	}
	dir, err := memoryDir(config.StateDir)
	if err != nil {
		return fail(err)
	}
	o := &ociRuntime{Runtime: oci.Runtime{Program: program, Root: filepath.Join(dir, "state")}, name: config.Isolation, version: version, open: open, known: known, bundles: filepath.Join(dir, "bundles")}
	for _, dir := range []string{o.Root, o.bundles} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fail(err)
		}
	}
	return o, nil
}

// memoryDirs are file systems in memory, which are empty after a reboot.
var memoryDirs = []string{"/run", "/dev/shm"}

// memoryDir creates the daemon's directory for files with secrets. Its name is derived from the state directory.
// It must not belong to another user.
func memoryDir(stateDir string) (string, error) {
	sum := sha256.Sum256([]byte(stateDir))
	for _, parent := range memoryDirs {
		if !inMemory(parent) {
			continue
		}
		dir := filepath.Join(parent, "vk-process-"+hex.EncodeToString(sum[:8]))
		if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
			return "", err
		}
		info, err := os.Lstat(dir)
		if err != nil {
			return "", err
		}
		if !info.IsDir() || info.Mode().Perm() != 0o700 || !isOurs(info) {
			return "", fmt.Errorf("%s belongs to another user, and the files of the daemon in it may be secret", dir)
		}
		return dir, nil
	}
	return "", fmt.Errorf("none of %v is a file system in memory, where the environment of containers could be kept", memoryDirs)
}

// containerOf returns the runtime's description of the container with the ID.
func (o *ociRuntime) containerOf(id string) *shim.OCI {
	// The bundle contains sockets, and socket paths must be short.
	return &shim.OCI{Runtime: o.Runtime, ID: id, Bundle: filepath.Join(o.bundles, id[:min(len(id), 16)])}
}

// completeSpec writes the runtime's configuration of the container in dir.
func (o *ociRuntime) completeSpec(id, dir string, spec *shim.Spec) error {
	spec.OCI = o.containerOf(id)
	return o.writeConfig(dir, spec)
}

// writeConfig writes the runtime's configuration of the container in dir, and creates the directory for its
// files.
func (o *ociRuntime) writeConfig(dir string, spec *shim.Spec) error {
	caps := spec.Caps
	if spec.Privileged {
		// Use only the capabilities that this process holds: the kernel may know more.
		held, err := heldCapabilities()
		if err != nil {
			return err
		}
		caps &= held
	}
	data, err := bundle.Config(spec, filepath.Join(dir, "rootfs"), capabilityNamesOf(caps))
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if err := os.MkdirAll(spec.OCI.Bundle, 0o700); err != nil {
		return fmt.Errorf("make the directory of the container in memory: %w", err)
	}
	spec.OCI.Config = data
	return nil
}

// discardRemains removes the remaining resources of a container whose supervisor is missing or was killed. No
// process of the container runs any more.
func discardRemains(ctx context.Context, dir string, o *shim.OCI) error {
	if o == nil {
		return nil
	}
	if o.Knows(o.ID) {
		files, err := os.MkdirTemp(filepath.Dir(o.Bundle), "c")
		if err != nil {
			return err
		}
		defer os.RemoveAll(files)
		// gVisor reports an error about a file server that is not its child, although it has removed everything.
		if err := o.Delete(files, o.ID).Run(ctx); err != nil && (o.Sandbox == "" || o.Knows(o.ID)) {
			return err
		}
	}
	return errors.Join(shim.UnmountRoot(dir), os.RemoveAll(o.Bundle))
}

// close removes the directory in memory, unless a running container uses it.
func (o *ociRuntime) close() {
	if o == nil {
		return
	}
	for _, dir := range []string{o.Root, o.bundles, filepath.Dir(o.bundles)} {
		if os.Remove(dir) != nil {
			return // a container still runs
		}
	}
}
