// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/bundle"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// With gVisor a pod is one sandbox: a process with a kernel of its own that contains the pod's containers. Like a
// container, it has a supervisor, and a pause program that does nothing.

const (
	// runsc is the name of gVisor's program.
	runsc = "runsc"
	// supervisorDirName is the name of the supervisor's directory in the directory of its sandbox.
	supervisorDirName = "sandbox"
	// pauseFile is the image of a sandbox's root file system, with the pause program.
	pauseFile = "pause.erofs"
)

// isGVisor reports whether pods are sandboxes of gVisor.
func (o *ociRuntime) isGVisor() bool { return o != nil && o.name == IsolationGVisor }

// guestHint is the advice in the error for a machine without runsc.
const guestHint = "make runsc builds it beside virtual-kubelet; isolation: runc is for a daemon with the rights of root, on the machine's kernel, and isolation: none runs " +
	"programs of the machine"

// besideThis returns the path of a program in the directory of this program; "" if it does not exist.
func besideThis(name string) string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// guestFlags returns the runsc flags that every command for a sandbox needs.
func guestFlags(ownNetwork bool) []string {
	flags := []string{
		"--platform=systrap", "--ignore-cgroups", "--overlay2=none", "--oci-seccomp", "--allow-suid", "--host-settings=ignore",
		"--gofer-network-namespace=new", // the other value leaves a mount behind
	}
	if os.Geteuid() != 0 {
		flags = append(flags, "--rootless")
	} else {
		flags = append(flags, "--directfs=false") // the sandbox then runs as the user nobody, and another process opens files for it
	}
	if ownNetwork {
		return append(flags, "--network=sandbox", "--net-raw")
	}
	return append(flags, "--network=host")
}

// guestOf returns the runtime's description of a container in a sandbox, or of the sandbox itself if id is the
// sandbox's ID.
func (o *ociRuntime) guestOf(id string, s *sandbox) *shim.OCI {
	c := o.containerOf(id)
	// The ID is part of the name of a socket, and socket paths must be short.
	c.ID, c.Sandbox, c.Supervisor, c.PIDs = guestID(id), guestID(s.id), s.supervisorDir(), id
	c.Flags = guestFlags(s.held || len(s.addresses) > 0)
	return c
}

func guestID(id string) string { return id[:min(len(id), 32)] }

func (s *sandbox) supervisorDir() string { return filepath.Join(s.dir, supervisorDirName) }

// guestGroup returns the control group of a sandbox, which contains all its containers; it may not exist.
func (r *Runtime) guestGroup(s *sandbox) *cgroups {
	return r.cgroups.groupsBelow(s.config.GetLinux().GetCgroupParent())
}

// guestOverhead returns the resources that a sandbox and the runsc commands for it need, like the overhead of a
// RuntimeClass: without them, a pod with small limits would not start.
func guestOverhead() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
}

// refuseGuest refuses a pod that requests a feature that gVisor does not have.
func refuseGuest(config *runtimeapi.PodSandboxConfig) error {
	security := config.GetLinux().GetSecurityContext()
	refuse := func(what string) error {
		return status.Errorf(codes.InvalidArgument, "%s is not supported with isolation %s", what, IsolationGVisor)
	}
	switch {
	case security.GetPrivileged():
		return refuse("a privileged container")
	case security.GetNamespaceOptions().GetPid() == runtimeapi.NamespaceMode_NODE:
		return refuse("hostPID")
	case security.GetNamespaceOptions().GetIpc() == runtimeapi.NamespaceMode_NODE:
		return refuse("hostIPC")
	case len(config.GetLinux().GetSysctls()) > 0:
		return refuse("a sysctl")
	}
	return nil
}

// startGuest starts the sandbox of a pod.
func (r *Runtime) startGuest(ctx context.Context, s *sandbox) error {
	if ctx.Err() != nil { // no caller waits for the sandbox any more
		return ctx.Err()
	}
	spec := shim.Spec{Hostname: s.config.GetHostname()}
	if user := r.userNetwork(); user != nil && len(s.addresses) > 0 {
		spec.Network = user.supervisorLink(s)
	} else if len(s.addresses) > 0 {
		spec.NetNS = s.netnsPath()
	}
	err := r.guestSpec(s, &spec)
	if err != nil {
		return err
	}
	if spec.Cgroup, err = r.guestGroup(s).makeGroup(s.id, nil); err != nil {
		return fmt.Errorf("make the cgroup of the sandbox: %w", err)
	}
	spec.OCI.Group = spec.Cgroup
	cmd, err := shim.Start(ctx, s.supervisorDir(), spec)
	if err != nil {
		return errors.Join(fmt.Errorf("start gVisor: %w", err), r.discardGuest(context.WithoutCancel(ctx), s))
	}
	go func() { _ = cmd.Wait() }() // the file of the state has the outcome
	return nil
}

// guestSpec makes the directory of a sandbox's supervisor, and completes its spec.
func (r *Runtime) guestSpec(s *sandbox, spec *shim.Spec) error {
	image, err := bundle.PauseImage(runtime.GOARCH)
	if err == nil {
		err = os.MkdirAll(s.supervisorDir(), 0o755) //nolint:gosec // the same mode as for a container
	}
	path := filepath.Join(s.supervisorDir(), pauseFile)
	if err == nil {
		err = os.WriteFile(path, image, 0o644) //nolint:gosec // the file has no secrets
	}
	if err != nil {
		return fmt.Errorf("make the root of the sandbox: %w", err)
	}
	spec.Argv, spec.Cwd, spec.ReadOnly, spec.NoNewPrivs = []string{bundle.PauseFile}, "/", true, true
	spec.OCI = r.oci.guestOf(s.id, s)
	spec.OCI.RootImage = path
	if spec.OCI.Volumes, err = memoryVolumes(s.config); err != nil {
		return err
	}
	return r.oci.writeConfig(s.supervisorDir(), spec)
}

// EndSandbox records that no more containers start in the sandbox: see podruntime.SandboxEnder.
func (r *Runtime) EndSandbox(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[id]; s != nil {
		s.ending = true
	}
}

// endsGuest reports whether killing a container may also end its sandbox: the sandbox is about to stop, and no
// other container runs in it.
func (r *Runtime) endsGuest(c *container) bool {
	s, err := r.findSandbox(c.Sandbox)
	if err != nil || !r.oci.isGVisor() {
		return false
	}
	r.mu.Lock()
	ending := s.ending
	r.mu.Unlock()
	return ending && !slices.ContainsFunc(r.containersOf(s.id), func(other *container) bool {
		if other == c {
			return false
		}
		state, err := shim.ReadState(other.dir)
		return err != nil || state.Started() && !state.Ended()
	})
}

// stopGuest ends the gVisor sandbox of a pod, and removes its remaining resources.
func (r *Runtime) stopGuest(ctx context.Context, s *sandbox) error {
	if err := endSupervisor(ctx, s.supervisorDir()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("stop gVisor: %w", err)
	}
	// A killed supervisor leaves its sandbox behind: reading its state also ends the sandbox.
	if _, err := shim.ReadState(s.supervisorDir()); err != nil || !r.oci.isGVisor() {
		return err
	}
	return r.discardGuest(ctx, s)
}

// endSupervisor ends the supervisor of a sandbox, and with it the sandbox. It uses the PID in the state file,
// because a search through all processes of the machine would be too expensive at the end of each pod.
func endSupervisor(ctx context.Context, dir string) error {
	state, err := shim.ReadState(dir)
	switch {
	case err != nil || state.Shim.PID == 0: // the state cannot be read, or was not written yet
		return endUnknown(ctx, dir)
	case !state.Shim.Alive():
		return nil
	}
	return endSupervisors(ctx, dir, state.Shim)
}

func (r *Runtime) discardGuest(ctx context.Context, s *sandbox) error {
	group := r.guestGroup(s).groupOf(s.id)
	group.Kill()
	if err := discardRemains(ctx, s.supervisorDir(), r.oci.guestOf(s.id, s)); err != nil {
		return fmt.Errorf("remove the leftovers of gVisor: %w", err)
	}
	return group.Remove()
}

// guestKept reports whether the pod has a gVisor sandbox, even if this daemon is configured with another
// isolation.
func (s *sandbox) guestKept() bool {
	_, err := os.Stat(s.supervisorDir())
	return err == nil
}

// guestEnded reports whether the gVisor sandbox of a pod has ended unexpectedly, and with it all containers.
func (r *Runtime) guestEnded(s *sandbox) bool {
	if !r.oci.isGVisor() {
		return false
	}
	state, err := shim.ReadState(s.supervisorDir())
	return err == nil && (!state.Started() || state.Ended())
}

// completeGuest writes the runtime's configuration of a container in the sandbox of its pod.
func (r *Runtime) completeGuest(s *sandbox, c *container, spec *shim.Spec, security *runtimeapi.LinuxContainerSecurityContext) error {
	spec.OCI = r.oci.guestOf(c.id, s)
	spec.OCI.Group = r.guestGroup(s).groupOf(s.id)
	spec.NetNS = "" // the container uses the network of the sandbox
	if options := security.GetNamespaceOptions(); options.GetPid() == runtimeapi.NamespaceMode_TARGET {
		target, err := r.findContainer(options.GetTargetId())
		if err != nil {
			return err
		}
		if target.Sandbox != s.id {
			return status.Errorf(codes.InvalidArgument, "container %s, whose processes are to be seen, is of another pod", target.id)
		}
		spec.PIDOf, spec.OCI.PIDs = 0, target.Spec.OCI.PIDs
	}
	return r.oci.writeConfig(c.dir, spec)
}

// tryGuest checks that gVisor works: it starts and ends a sandbox like a pod's, and a sandbox with the root of a
// container.
func (r *Runtime) tryGuest(ctx context.Context, dir string, overlay bool) error {
	for _, own := range []bool{true, false} {
		s := &sandbox{id: newID(), dir: filepath.Join(dir, fmt.Sprint(own)), held: r.config.PodNetwork != PodNetworkHost}
		var spec shim.Spec
		err := r.guestSpec(s, &spec)
		if err == nil && !own {
			err = r.guestDirectory(s, &spec, overlay)
		}
		if err == nil {
			err = shim.Probe(ctx, s.supervisorDir(), spec)
		}
		if err = errors.Join(err, discardRemains(context.WithoutCancel(ctx), s.supervisorDir(), spec.OCI)); err != nil {
			return err
		}
	}
	return nil
}

// guestDirectory gives a test sandbox the root of a container instead of its usual root.
func (r *Runtime) guestDirectory(s *sandbox, spec *shim.Spec, overlay bool) error {
	root := filepath.Join(s.supervisorDir(), "rootfs")
	dirs := []string{root}
	if overlay {
		spec.Image = filepath.Join(s.supervisorDir(), "image")
		dirs = append(dirs, filepath.Join(s.supervisorDir(), "upper"), filepath.Join(s.supervisorDir(), "work"))
	}
	image := cmp.Or(spec.Image, root)
	for _, m := range []string{"proc", "dev", "sys", "tmp"} { // the runtime has no right to make them in a read-only root
		dirs = append(dirs, filepath.Join(image, m))
	}
	program, err := bundle.Pause(runtime.GOARCH)
	for _, d := range dirs {
		err = errors.Join(err, os.MkdirAll(d, 0o755)) //nolint:gosec // the same mode as for a container
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(image, bundle.PauseFile), program, 0o755) //nolint:gosec // a program must be executable
	}
	if err != nil {
		return err
	}
	spec.OCI.RootImage = ""
	return r.oci.writeConfig(s.supervisorDir(), spec)
}
