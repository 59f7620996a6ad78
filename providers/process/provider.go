// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oomscore"
)

//go:embed README.md
var readme string

// Provider returns the provider named process.
func Provider() cli.Provider {
	return cli.Provider{
		Name:   "process",
		Readme: readme,
		New: func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			oomscore.Lower()
			return New(ctx, in, config)
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
		Check: func(path string) (func(*corev1.Pod) error, error) {
			config, err := LoadConfig(path)
			return config.checkPod, err
		},
	}
}

var (
	_ nodeutil.Provider     = (*provider)(nil)
	_ node.PodNotifier      = (*provider)(nil)
	_ node.PodObjectsUser   = (*provider)(nil)
	_ node.BackgroundRunner = (*provider)(nil)
	_ node.NodeProvider     = (*provider)(nil)
	_ cli.NodeConfigurer    = (*provider)(nil)
	_ cli.Adviser           = (*provider)(nil)
	_ podruntime.Streamer   = (*Runtime)(nil)

	_ podruntime.SandboxEnder = (*Runtime)(nil)
)

// provider runs pods as processes of this machine.
type provider struct {
	*podruntime.Runtime
	runtime *Runtime
	in      cli.ProviderInput
}

// New returns a provider with this configuration, and tests the isolation of containers.
func New(ctx context.Context, in cli.ProviderInput, config Config) (*provider, error) {
	r, err := Open(ctx, config, in.Node.Name, in.InternalIP)
	if err != nil {
		return nil, err
	}
	r.services, r.recorder = servicesOf(in, config), in.Recorder
	lacks, notes := declareFeatures(surroundings{
		isolation: r.Isolation(), root: os.Geteuid() == 0, noLimits: r.cgroups.why, selinux: hasSELinux(),
		network: r.network != nil, hostPorts: r.network != nil && r.network.hostPorts(), user: r.userNetwork() != nil, ignoreSeccomp: config.IgnoreSeccomp,
	})
	parent := ""
	if r.cgroups.isUsable() {
		parent = "/"
	}
	var overhead corev1.ResourceList
	if r.oci.isGVisor() {
		overhead = guestOverhead()
	}
	runtimeConfig := podruntime.Config{
		Runtime: r, Images: r.Images(), Node: in.Node, Recorder: in.Recorder,
		Root: filepath.Join(r.config.StateDir, "pods"), LogRoot: filepath.Join(r.config.StateDir, "logs"),
		ClusterDNS: config.ClusterDNS, ClusterDomain: in.KubeClusterDomain, HostPaths: config.HostPaths, LocalVolumes: config.LocalVolumes, ProvisionVolumes: config.ProvisionVolumes, Privileged: config.Privileged,
		CgroupParent: parent, CgroupRoots: r.cgroups.parentDirs(), PodPidsLimit: config.PodPidsLimit, SandboxOverhead: overhead, SandboxVolumes: r.oci.isGVisor(), SubPaths: r.oci.isGVisor(),
		SystemReserved: config.SystemReserved, KubeReserved: config.KubeReserved,
		MachineNetwork: r.network == nil, AllowedUnsafeSysctls: config.AllowedUnsafeSysctls, ImageGC: config.ImageGC, EvictionHard: r.evictionHard(ctx), Lacks: lacks, Notes: notes,
	}
	if user := r.userNetwork(); user != nil {
		runtimeConfig.Pods, runtimeConfig.Nameserver = user, user.gateway.String()
	}
	pods, err := podruntime.New(runtimeConfig)
	if err != nil {
		return nil, fmt.Errorf("process provider: %w", errors.Join(err, r.Close(ctx)))
	}
	return &provider{Runtime: pods, runtime: r, in: in}, nil
}

// RunInBackground runs the provider until ctx ends, and then unlocks the state directory for the next daemon.
// Containers keep running.
func (p *provider) RunInBackground(ctx context.Context) error {
	p.tellSharedNetwork()
	watched := make(chan error, 1)
	ended, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { watched <- p.runtime.Run(ended) }()
	err := p.Runtime.RunInBackground(ctx)
	cancel()
	return errors.Join(err, <-watched, p.runtime.Close(ctx))
}

// CreatePod refuses pods with machineCapabilities and pods that gVisor cannot start. It records any other pod as
// desired.
func (p *provider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.runtime.refusePodCapabilities(pod); err != nil {
		return err
	}
	if p.runtime.oci.isGVisor() {
		if err := mountsOfGuest(pod); err != nil {
			return err
		}
	}
	return p.Runtime.CreatePod(ctx, pod)
}
