// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// containerSpec returns the container's spec for its shim. It refuses unsupported settings.
func (r *Runtime) containerSpec(ctx context.Context, s *sandbox, c *container, image images.Image) (shim.Spec, error) {
	config, security := c.config, c.config.GetLinux().GetSecurityContext()
	spec := shim.Spec{
		Hostname: s.config.GetHostname(),
		ReadOnly: security.GetReadonlyRootfs(), NoNewPrivs: security.GetNoNewPrivs(),
		Masked: security.GetMaskedPaths(), ReadOnlyPaths: security.GetReadonlyPaths(),
		Sysctls: s.config.GetLinux().GetSysctls(), OOMScoreAdj: max(int(config.GetLinux().GetResources().GetOomScoreAdj()), lowestOOMScore()),
		TTY: config.GetTty(), Stdin: config.GetStdin(), StdinOnce: config.GetStdinOnce(),
		Cwd: cmp.Or(config.GetWorkingDir(), image.Config.WorkingDir, "/"),
	}
	if !filepath.IsAbs(spec.Cwd) {
		return spec, status.Errorf(codes.InvalidArgument, "working directory %q: want an absolute path", spec.Cwd)
	}
	if config.GetLogPath() != "" && s.config.GetLogDirectory() != "" {
		spec.LogDir = s.config.GetLogDirectory()
		spec.LogPath = filepath.Join(spec.LogDir, config.GetLogPath())
	}
	if r.overlay {
		spec.Image = r.images.Root(image.ID)
	}
	if !r.isContained() {
		// With isolation none, paths are paths of the machine.
		spec.Cwd = cmp.Or(config.GetWorkingDir(), c.dir)
	}
	if len(s.addresses) > 0 {
		spec.NetNS = s.netnsPath()
	}
	var err error
	if spec.Argv, err = r.commandLine(config, image); err != nil {
		return spec, err
	}
	if err := r.setSecurity(&spec, security); err != nil {
		return spec, err
	}
	home, err := r.setUser(&spec, security, image)
	if err != nil {
		return spec, err
	}
	spec.Env = containerEnvironment(config, image, spec.Hostname, home)
	if spec.Mounts, err = r.containerMounts(ctx, s, config); err != nil || !r.isContained() {
		return spec, err
	}
	spec.Cgroup = r.cgroups.groupsBelow(s.config.GetLinux().GetCgroupParent()).groupOf(c.id)
	if r.oci.isGVisor() {
		return spec, r.completeGuest(s, c, &spec, security)
	}
	return spec, r.oci.completeSpec(c.id, c.dir, &spec)
}

// commandLine returns the command of the configuration, or else of the image.
func (r *Runtime) commandLine(config *runtimeapi.ContainerConfig, image images.Image) ([]string, error) {
	command, args := config.GetCommand(), config.GetArgs()
	if len(command) == 0 {
		if len(args) == 0 {
			args = image.Config.Cmd
		}
		command = image.Config.Entrypoint
	}
	argv := append(append([]string{}, command...), args...)
	if len(argv) > 0 {
		return argv, nil
	}
	if !r.isContained() {
		return nil, status.Error(codes.InvalidArgument, "without isolation no image is used: the container needs a command")
	}
	return nil, status.Error(codes.InvalidArgument, "no command specified, neither in the pod nor in the image")
}

func containerEnvironment(config *runtimeapi.ContainerConfig, image images.Image, hostname, home string) []string {
	env := append([]string{"PATH=" + defaultPath, "HOSTNAME=" + hostname, "HOME=" + home}, image.Config.Env...)
	if config.GetTty() {
		env = append(env, "TERM=xterm")
	}
	for _, e := range config.GetEnvs() {
		env = append(env, e.GetKey()+"="+string(e.GetValue()))
	}
	return lastOfEach(env)
}

// lastOfEach keeps the last value of each variable: programs differ in how they treat duplicates.
func lastOfEach(env []string) []string {
	at, out := map[string]int{}, env[:0]
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if i, ok := at[name]; ok {
			out[i] = e
			continue
		}
		at[name] = len(out)
		out = append(out, e)
	}
	return out
}

// setSecurity sets namespaces and capabilities.
func (r *Runtime) setSecurity(spec *shim.Spec, security *runtimeapi.LinuxContainerSecurityContext) error {
	refuse := func(format string, args ...any) error { return status.Errorf(codes.InvalidArgument, format, args...) }
	spec.Privileged = security.GetPrivileged()
	if spec.Privileged && (!r.isContained() || r.oci.isGVisor()) {
		return refuse("a privileged container needs isolation %s or %s, and here it is %s", IsolationRunc, IsolationCrun, r.Isolation())
	}
	if err := r.refuseSeccomp(security.GetSeccomp()); err != nil {
		return err
	}
	spec.Seccomp = r.isContained() && !spec.Privileged && security.GetSeccomp().GetProfileType() == runtimeapi.SecurityProfile_RuntimeDefault && security.GetSeccomp() != nil
	if p := security.GetApparmor(); p.GetProfileType() == runtimeapi.SecurityProfile_Localhost {
		return refuse("AppArmor profile %q: the process provider has no AppArmor", p.GetLocalhostRef())
	}
	options := security.GetNamespaceOptions()
	spec.HostIPC = options.GetIpc() == runtimeapi.NamespaceMode_NODE
	switch options.GetPid() {
	case runtimeapi.NamespaceMode_NODE:
		spec.HostPID = true
	case runtimeapi.NamespaceMode_TARGET:
		target, err := r.findContainer(options.GetTargetId())
		if err != nil {
			return err
		}
		state, err := shim.ReadState(target.dir)
		if err != nil || !state.Started() || state.Ended() {
			return status.Errorf(codes.FailedPrecondition, "container %s, whose processes are to be seen, does not run", target.id)
		}
		if !r.isContained() {
			return refuse("the processes of another container cannot be seen with isolation %s", r.Isolation())
		}
		spec.PIDOf = state.Init.PID
	case runtimeapi.NamespaceMode_POD:
		// POD is the default value. The sandbox has no process, so there is no PID namespace to share.
	}
	own := spec.NetNS != ""
	if err := r.refuseMachineCapabilities(own, security.GetCapabilities().GetAddCapabilities()); err != nil {
		return refuse("%v", err)
	}
	var err error
	spec.Caps, err = capabilityMask(spec.Privileged, own, security.GetCapabilities())
	return err
}

// refuseSeccomp refuses a profile that the runtime would not apply. This catches debug containers, which join a
// pod after its admission.
func (r *Runtime) refuseSeccomp(p *runtimeapi.SecurityProfile) error {
	kind := p.GetProfileType()
	if p == nil || kind == runtimeapi.SecurityProfile_Unconfined || kind == runtimeapi.SecurityProfile_RuntimeDefault && (r.isContained() || r.config.IgnoreSeccomp) {
		return nil
	}
	name := kind.String()
	if kind == runtimeapi.SecurityProfile_Localhost {
		name += " " + p.GetLocalhostRef()
	}
	if r.isContained() {
		return status.Errorf(codes.InvalidArgument, "seccomp profile %s: the process provider has none but the default of the runtime", name)
	}
	return status.Errorf(codes.InvalidArgument, "seccomp profile %s: the process provider filters no system calls", name)
}

// makeRoot creates the directories for the container's root file system.
func (r *Runtime) makeRoot(c *container, image images.Image) error {
	root := filepath.Join(c.dir, "rootfs")
	switch {
	case !r.isContained():
		return nil
	case !r.overlay:
		return images.CopyTree(r.images.Root(image.ID), root)
	}
	for _, dir := range []string{"rootfs", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(c.dir, dir), 0o755); err != nil { //nolint:gosec // the root of a container is open to its users
			return err
		}
	}
	return nil
}

// stopSignal returns the stop signal of the pod, or else of the image, or else SIGTERM.
func stopSignal(asked runtimeapi.Signal, image string) syscall.Signal {
	if asked != runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		image = strings.TrimPrefix(asked.String(), "SIGNAL_")
	}
	if s, err := parseSignal(image); err == nil {
		return s
	}
	return syscall.SIGTERM
}

func parseSignal(name string) (syscall.Signal, error) {
	var n int
	if _, err := fmt.Sscanf(name, "%d", &n); err == nil && n > 0 && n < 65 {
		return syscall.Signal(n), nil
	}
	name = strings.ToUpper(name)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if s := signalNumber(name); s != 0 {
		return s, nil
	}
	return 0, fmt.Errorf("signal %q is not known", name)
}
