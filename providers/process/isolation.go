// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// findIsolation finds and tests the configured runtime: a daemon that cannot create containers fails at the
// start.
func (r *Runtime) findIsolation(ctx context.Context) error {
	if r.config.Isolation == IsolationNone {
		if runtime.GOOS == "windows" {
			return errors.New("containers on Windows are not supported")
		}
		log.G(ctx).Warn("process provider: containers are programs of this machine, without isolation: run only what you trust")
		return nil
	}
	if err := shim.Program(); err != nil {
		log.G(ctx).Infof("process provider: each container takes 15 ms of CPU more for its start, without the program %s beside this one: %v", shim.Argv0, err)
	}
	var err error
	if r.oci, err = findRuntime(ctx, r.config); err != nil {
		return err
	}
	if !r.oci.isGVisor() && !r.cgroups.isUsable() {
		return fmt.Errorf("isolation %s: %w", r.config.Isolation, r.cgroups.why)
	}
	ways := []bool{true, false}
	if os.Geteuid() != 0 {
		ways = ways[1:] // a mount in a user's namespace is not visible to other processes
	}
	var errs []error
	for _, overlay := range ways {
		err := r.tryContainer(ctx, overlay)
		if durable.Full(err) && r.keptWay(overlay) {
			r.overlay = overlay
			log.G(ctx).WithError(err).Warn("process provider: the disk is full, so containers are made as they were before")
			return nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("layers: %v: %w", overlay, err))
			continue
		}
		r.overlay = overlay
		if err := r.keepWay(); err != nil {
			log.G(ctx).WithError(err).Warn("process provider: how containers are made could not be kept for a start on a full disk")
		}
		log.G(ctx).WithFields(log.Fields{"isolation": r.Isolation(), "layers": overlay}).Info("process provider: found how to isolate containers")
		if len(errs) > 0 {
			log.G(ctx).Warnf("process provider: the failure: %v", errors.Join(errs...))
		}
		return nil
	}
	err = errors.Join(errs...)
	return fmt.Errorf("no container can be made by %s; %s: %w", r.oci.Program, insteadOf(err), err)
}

// insteadOf returns advice for a runtime that cannot create containers.
func insteadOf(err error) string {
	if strings.Contains(err.Error(), "hybrid mode") { // the text of crun's error
		return "this machine has controllers of control groups in both versions, which that runtime takes in one only: start the machine with " +
			"systemd.unified_cgroup_hierarchy=1, or use isolation: gvisor or runc"
	}
	return "isolation: none runs programs of the machine"
}

// isContained reports whether a runtime runs the containers, each with its own root; otherwise they are programs
// of the machine.
func (r *Runtime) isContained() bool { return r.oci != nil }

// Isolation returns the configured isolation: the name of a runtime, or IsolationNone.
func (r *Runtime) Isolation() string { return r.config.Isolation }

// wayFile stores how containers were created last. On a full disk, which allows no test, the runtime relies on
// this file: it must start, because only it can remove the containers and images that fill the disk.
const wayFile = "isolation.json"

type keptWay struct {
	Isolation string
	Layers    bool
}

func (r *Runtime) keepWay() error {
	path, now := filepath.Join(r.config.StateDir, wayFile), keptWay{r.Isolation(), r.overlay}
	var kept keptWay
	if err := durable.ReadJSON(path, &kept); err == nil && kept == now {
		return nil
	}
	return durable.WriteJSON(path, now)
}

// keptWay reports whether wayFile has the present isolation with this value of overlay.
func (r *Runtime) keptWay(overlay bool) bool {
	var kept keptWay
	err := durable.ReadJSON(filepath.Join(r.config.StateDir, wayFile), &kept)
	return err == nil && kept == keptWay{r.Isolation(), overlay}
}

// tryContainer creates a test container without starting its process.
func (r *Runtime) tryContainer(ctx context.Context, overlay bool) error {
	dir, err := os.MkdirTemp(r.config.StateDir, "probe-")
	if err != nil {
		return err
	}
	defer func() { _ = images.RemoveTree(dir) }()
	if r.oci.isGVisor() {
		return r.tryGuest(ctx, dir, overlay)
	}
	for _, name := range []string{"image", "rootfs", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil { //nolint:gosec // the same mode as for a container
			return err
		}
	}
	caps, err := capabilityMask(false, false, nil)
	if err != nil {
		return err
	}
	spec := shim.Spec{
		Argv: []string{"/none"}, Cwd: "/", Hostname: "probe", ReadOnly: true, Caps: caps,
		Mounts: []shim.Mount{{Source: dir, Target: "/mount", ReadOnly: true}},
	}
	if overlay {
		spec.Image = filepath.Join(dir, "image")
	}
	id := newID()
	if spec.Cgroup, err = r.cgroups.makeGroup(id, nil); err == nil {
		err = r.oci.completeSpec(id, dir, &spec)
	}
	if err == nil {
		err = shim.Probe(ctx, dir, spec)
	}
	return errors.Join(err, discardRemains(context.WithoutCancel(ctx), dir, spec.OCI), spec.Cgroup.Remove())
}
