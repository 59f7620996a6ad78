// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// candidate is a way to make containers.
type candidate struct {
	isolation shim.Isolation
	overlay   bool
}

// chooseIsolation tries the ways from the strongest, and takes the first that the kernel allows.
func (r *Runtime) chooseIsolation(ctx context.Context) error {
	if r.config.Isolation == IsolationNone {
		if runtime.GOOS == "windows" {
			return errors.New("containers on Windows are not supported")
		}
		r.isolation = shim.None
		log.G(ctx).Warn("process provider: containers are programs of this machine, without isolation: run only what you trust")
		return nil
	}
	if runtime.GOOS != "linux" {
		return fmt.Errorf("containers need Linux; with isolation: none, pods run programs of this machine (%s)", runtime.GOOS)
	}
	var err error
	if r.oci, err = findRuntime(ctx, r.config); err != nil {
		return err
	}
	if r.oci != nil && !r.oci.gvisor() && !r.cgroups.usable() {
		return fmt.Errorf("isolation %s: %w", r.config.Isolation, r.cgroups.why)
	}
	level := shim.User
	if os.Geteuid() == 0 {
		level = shim.Root
	}
	ways := []candidate{{level, true}, {level, false}}
	if r.oci.gvisor() && os.Geteuid() != 0 {
		ways = []candidate{{shim.Guest, false}} // layers that a user mounts are seen by nobody else
	}
	if os.Geteuid() == 0 && r.config.Isolation == IsolationAuto {
		ways = append(ways, candidate{shim.Chroot, false})
	}
	var errs []error
	for _, way := range ways {
		err := r.try(ctx, way)
		if kept, ok := r.keptWay(ways); durable.Full(err) && ok {
			r.isolation, r.overlay = kept.isolation, kept.overlay
			log.G(ctx).WithError(err).Warn("process provider: the disk is full, so containers are made as they were before")
			return nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("isolation %s (layers: %v): %w", r.nameOf(way.isolation), way.overlay, err))
			continue
		}
		r.isolation, r.overlay = way.isolation, way.overlay
		if err := r.keepWay(way); err != nil {
			log.G(ctx).WithError(err).Warn("process provider: how containers are made could not be kept for a start on a full disk")
		}
		log.G(ctx).WithFields(log.Fields{"isolation": r.nameOf(way.isolation), "layers": way.overlay}).Info("process provider: found how to isolate containers")
		if len(errs) > 0 {
			log.G(ctx).Warnf("process provider: what did not work: %v", errors.Join(errs...))
		}
		return nil
	}
	if r.oci != nil {
		return fmt.Errorf("no container can be made by %s: %w", r.oci.Program, errors.Join(errs...))
	}
	return fmt.Errorf("no container can be isolated here; isolation: none runs programs of the machine: %w", errors.Join(errs...))
}

// wayFile has the way that containers were made last. Where there is no room to try one, it must be that: they and their images are on
// a disk that is full, and only who has them can remove any.
const wayFile = "isolation.json"

type keptWay struct {
	Isolation string
	Layers    bool
}

func (r *Runtime) keepWay(way candidate) error {
	path, now := filepath.Join(r.config.StateDir, wayFile), keptWay{r.nameOf(way.isolation), way.overlay}
	var kept keptWay
	if err := durable.ReadJSON(path, &kept); err == nil && kept == now {
		return nil
	}
	return durable.WriteJSON(path, now)
}

// keptWay returns the one of the ways that was kept, if it was.
func (r *Runtime) keptWay(ways []candidate) (candidate, bool) {
	var kept keptWay
	if err := durable.ReadJSON(filepath.Join(r.config.StateDir, wayFile), &kept); err != nil {
		return candidate{}, false
	}
	for _, way := range ways {
		if kept == (keptWay{r.nameOf(way.isolation), way.overlay}) {
			return way, true
		}
	}
	return candidate{}, false
}

// nameOf is what a user calls a way to make containers.
func (r *Runtime) nameOf(isolation shim.Isolation) string {
	if r.oci != nil {
		return r.oci.name
	}
	return string(isolation)
}

// try makes a container up to its process.
func (r *Runtime) try(ctx context.Context, way candidate) error {
	dir, err := os.MkdirTemp(r.config.StateDir, "probe-")
	if err != nil {
		return err
	}
	defer func() { _ = images.RemoveTree(dir) }()
	if r.oci.gvisor() {
		r.isolation = way.isolation
		return r.tryGuest(ctx, dir, way.overlay)
	}
	for _, name := range []string{"image", "rootfs", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil { //nolint:gosec // as for a container
			return err
		}
	}
	caps, err := capabilities(false, false, nil)
	if err != nil {
		return err
	}
	spec := shim.Spec{
		Isolation: way.isolation, Argv: []string{"/none"}, Cwd: "/", Hostname: "probe", ReadOnly: true, Caps: caps,
		Mounts: []shim.Mount{{Source: dir, Target: "/mount", ReadOnly: true}},
	}
	if !way.isolation.Namespaces() {
		spec.Mounts = nil
	}
	if way.overlay {
		spec.Image = filepath.Join(dir, "image")
	}
	if r.oci == nil {
		return shim.Probe(ctx, dir, spec)
	}
	id := newID()
	if spec.Cgroup, err = r.cgroups.make(id, nil); err == nil {
		err = r.oci.complete(id, dir, &spec)
	}
	if err == nil {
		err = shim.Probe(ctx, dir, spec)
	}
	return errors.Join(err, discard(context.WithoutCancel(ctx), dir, spec.OCI), spec.Cgroup.Remove())
}
