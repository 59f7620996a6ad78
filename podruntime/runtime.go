// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/crilog"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/image"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stream"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
)

// Runtime is a provider that runs pods on a container runtime. Create it with New. Its methods implement the interfaces of providers, and delegate to
// parts that own their state.
type Runtime struct {
	cfg        Config
	node       *nodeProperties
	inputs     *podInputs
	volumes    *volumes.Volumes
	cgroups    cgroups
	prober     *probe.Prober
	workers    *workers
	lists      *lists
	requests   *requests
	usage      *usage
	collector  *image.Collector
	evictor    *evictor
	lock       *rootLock
	background *background
	loops      []func(ctx context.Context) // run concurrently with the workers until ctx ends
}

// New returns a provider for the runtime in cfg. It does nothing until RunInBackground.
func New(cfg Config) (*Runtime, error) {
	if err := checkConfig(cfg); err != nil {
		return nil, err
	}
	for _, dir := range []string{cfg.Root, cfg.LogRoot} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("pod runtime: make its directories: %w", err)
		}
	}
	kept, err := reserveResources(cfg)
	if err != nil {
		return nil, errdefs.InvalidInputf("pod runtime: %v", err)
	}
	w := &workers{
		background: &background{}, lists: newLists(), info: &runtimeInfo{runtime: cfg.Runtime}, conditions: &nodeConditions{},
		byUID: map[types.UID]*worker{},
	}
	if w.sysctls, err = criconfig.NewSysctls(cfg.AllowedUnsafeSysctls, cfg.MachineNetwork); err != nil {
		return nil, errdefs.InvalidInputf("pod runtime: allowed unsafe sysctls: %v", err)
	}
	node := &nodeProperties{root: cfg.Root, capacity: cfg.Capacity, reserved: kept, info: w.info}
	if w.exec, err = newExecutor(cfg, node, w); err != nil {
		return nil, err
	}
	exec := w.exec
	w.files = &podFiles{volumes: exec.volumes, messages: exec.messages, cgroups: exec.cgroups, settings: exec.settings, keepLogs: cfg.KeepLogs}
	w.meter = newMeter(exec.volumes.Usage, w.background.beginWithin)
	w.limits = &diskLimits{runtime: cfg.Runtime, settings: exec.settings, meter: w.meter, volumes: exec.volumes}
	r := &Runtime{
		cfg: cfg, node: node, inputs: exec.inputs, volumes: exec.volumes, cgroups: exec.cgroups, prober: exec.prober, workers: w, lists: w.lists,
		requests: &requests{workers: w, logs: exec.logs, streams: stream.New(cfg.Runtime)},
		usage:    newUsage(cfg, exec.settings, w.meter, w), lock: &rootLock{dir: cfg.Root}, background: w.background,
	}
	if r.collector, err = newCollector(cfg, w, r.usage, exec.events); err != nil {
		return nil, err
	}
	if r.evictor, err = newEvictor(cfg, w, r.usage, r.collector); err != nil {
		return nil, err
	}
	lister := &lister{runtime: cfg.Runtime, node: cfg.Node.Name, workers: w, lists: w.lists, last: map[types.UID]*listed{}}
	leftovers := &leftovers{files: w.files, puller: exec.puller, workers: w, lists: w.lists}
	rotator := &crilog.Rotator{Dir: exec.logs, Reopen: cfg.Runtime.ReopenContainerLog, Running: w.runningLogs}
	watcher := &cgroupWatcher{cgroups: exec.cgroups, workers: w, lists: w.lists, events: exec.events}
	r.loops = []func(context.Context){
		lister.run, lister.watchEvents, leftovers.run, r.prober.Run, rotator.Run, r.collector.Run, r.evictor.run, watcher.run,
	}
	return r, nil
}

// checkConfig returns an error if cfg lacks a required part.
func checkConfig(cfg Config) error {
	switch {
	case cfg.Runtime == nil, cfg.Images == nil:
		return errdefs.InvalidInput("pod runtime: missing container runtime")
	case cfg.Node == nil:
		return errdefs.InvalidInput("pod runtime: missing node")
	case cfg.Recorder == nil:
		return errdefs.InvalidInput("pod runtime: missing event recorder")
	case cfg.Root == "", cfg.LogRoot == "":
		return errdefs.InvalidInput("pod runtime: missing directory for pods or for logs")
	}
	return nil
}

// NotifyPods sets the function that is called for every change of a pod.
func (r *Runtime) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { r.workers.notify = notify }

// RunInBackground manages the pods until ctx ends.
func (r *Runtime) RunInBackground(ctx context.Context) error {
	lock, err := r.lock.awaitLock(ctx)
	if lock == nil {
		return err
	}
	defer lock.Close()
	r.background.start(ctx)
	r.workers.startWorkers()
	for _, loop := range r.loops {
		r.background.beginWithin(loop)
	}
	<-ctx.Done()
	r.background.stop()
	r.cgroups.close()
	return nil
}
