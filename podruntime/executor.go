// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/crilog"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/hostfiles"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/image"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
)

// executor carries out actions on pods and containers. It makes no decisions and keeps no state of pods: the worker of a pod decides, and gives each
// job a copy of its state.
type executor struct {
	runtime   cri.RuntimeService
	node      *corev1.Node
	settings  criconfig.Settings
	events    events
	cgroups   cgroups
	volumes   *volumes.Volumes
	messages  messages
	sandboxes *sandboxes
	inputs    *podInputs
	puller    *image.Puller
	prober    *probe.Prober
	logs      *crilog.Dir
	keepLogs  bool
}

// newExecutor returns the executor of the actions of w.
func newExecutor(cfg Config, node *nodeProperties, w *workers) (*executor, error) {
	e := &executor{
		runtime: cfg.Runtime, node: cfg.Node, settings: settingsOf(cfg), inputs: &podInputs{}, keepLogs: cfg.KeepLogs,
		events:   events{recorder: cfg.Recorder, node: cfg.Node.Name, isStopping: w.background.isStopping},
		messages: messages{dir: filepath.Join(cfg.Root, "messages")},
	}
	var offered corev1.NodeStatus
	node.fillCapacity(&offered)
	var err error
	if e.cgroups, err = openCgroups(cfg, node.reserved, offered); err != nil {
		return nil, err
	}
	e.settings.PodCgroup = e.cgroups.podGroup
	if e.logs, err = crilog.OpenDir(cfg.LogRoot); err != nil {
		return nil, fmt.Errorf("pod runtime: %w", err)
	}
	e.volumes, err = volumes.New(volumes.Config{
		Root: cfg.Root, HostPaths: cfg.HostPaths, LocalVolumes: cfg.LocalVolumes, Provision: cfg.ProvisionVolumes, SubPaths: cfg.SubPaths,
		Allocatable:       func() corev1.ResourceList { return cfg.Node.Status.Allocatable },
		RecursiveReadOnly: w.info.recursiveReadOnly, Image: e.imageVolume,
	})
	if err != nil {
		return nil, fmt.Errorf("pod runtime: %w", err)
	}
	e.sandboxes = &sandboxes{
		settings: e.settings, volumes: e.volumes, namesVolumes: cfg.SandboxVolumes, handler: cfg.RuntimeHandler,
		files: hostfiles.New(hostfiles.Config{
			ClusterDNS: cfg.ClusterDNS, ClusterDomain: cfg.ClusterDomain, Nameserver: cfg.Nameserver, Recorder: cfg.Recorder,
		}),
	}
	e.prober = probe.New(probe.Config{Exec: cfg.Runtime.ExecSync, Changed: w.wakeWorker, Event: e.events.recordContainer, Pods: cfg.Pods})
	e.puller, err = image.New(image.Config{
		Images: cfg.Images, Credentials: e.inputs.pullCredentials, Dir: filepath.Join(cfg.Root, "pulls"), Event: e.events.recordContainer,
	})
	if err != nil {
		return nil, fmt.Errorf("pod runtime: %w", err)
	}
	return e, nil
}

// hostIPs are the addresses of the node.
func (e *executor) hostIPs() []string {
	var ips []string
	for _, a := range e.node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			ips = append(ips, a.Address)
		}
	}
	return ips
}
