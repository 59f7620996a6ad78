// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/crilog"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/hostfiles"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/image"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stats"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stream"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
)

// Runtime is a provider of pods on a container runtime. Make it with New.
type Runtime struct {
	cfg      Config
	settings criconfig.Settings
	sysctls  criconfig.Sysctls
	reserved reserved
	cgroups  cgroups
	volumes  *volumes.Volumes
	files    *hostfiles.Files
	// quietFiles records no events.
	quietFiles *hostfiles.Files
	prober     *probe.Prober
	puller     *image.Puller
	logs       *crilog.Dir
	streams    *stream.Streams
	stats      *stats.Stats
	lister     *lister
	meter      *meter
	collector  *image.Collector
	evictor    *evictor

	// Set before any pod comes, constant afterwards.
	objects     podinputs.PodObjects
	credentials podinputs.PullCredentials
	notify      func(*corev1.Pod)

	mu        sync.Mutex
	name      string                // guarded by mu: the runtime's own name
	recursive map[string]bool       // guarded by mu: the handlers with support for recursive read-only mounts
	workers   map[types.UID]*worker // guarded by mu
	ctx       context.Context       // guarded by mu: of RunInBackground during its run, otherwise nil
	taken     atomic.Bool           // another process uses the directory
	wg        sync.WaitGroup        // of all workers and their goroutines
}

// New returns a provider over the runtime of cfg. It does nothing until RunInBackground.
func New(cfg Config) (*Runtime, error) {
	switch {
	case cfg.Runtime == nil, cfg.Images == nil:
		return nil, errdefs.InvalidInput("pod runtime: missing container runtime")
	case cfg.Node == nil:
		return nil, errdefs.InvalidInput("pod runtime: missing node")
	case cfg.Recorder == nil:
		return nil, errdefs.InvalidInput("pod runtime: missing event recorder")
	case cfg.Root == "", cfg.LogRoot == "":
		return nil, errdefs.InvalidInput("pod runtime: missing directory for pods or for logs")
	}
	r := &Runtime{cfg: cfg, workers: map[types.UID]*worker{}, recursive: map[string]bool{}, settings: settingsOf(cfg)}
	for _, dir := range []string{cfg.Root, cfg.LogRoot} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("pod runtime: make its directories: %w", err)
		}
	}
	var err error
	if r.sysctls, err = criconfig.NewSysctls(cfg.AllowedUnsafeSysctls, cfg.MachineNetwork); err != nil {
		return nil, errdefs.InvalidInputf("pod runtime: allowed unsafe sysctls: %v", err)
	}
	if r.reserved, err = reserveResources(cfg); err != nil {
		return nil, errdefs.InvalidInputf("pod runtime: %v", err)
	}
	var offered corev1.NodeStatus
	r.fillCapacity(&offered)
	if r.cgroups, err = openCgroups(cfg, r.reserved, offered); err != nil {
		return nil, err
	}
	r.settings.PodCgroup = r.cgroups.podGroup
	if r.logs, err = crilog.OpenDir(cfg.LogRoot); err != nil {
		return nil, fmt.Errorf("pod runtime: %w", err)
	}
	r.volumes, err = volumes.New(volumes.Config{
		Root: cfg.Root, HostPaths: cfg.HostPaths, LocalVolumes: cfg.LocalVolumes, Provision: cfg.ProvisionVolumes, SubPaths: cfg.SubPaths,
		Allocatable:       func() corev1.ResourceList { return cfg.Node.Status.Allocatable },
		RecursiveReadOnly: r.recursiveReadOnly, Image: r.imageVolume,
	})
	if err != nil {
		return nil, fmt.Errorf("pod runtime: %w", err)
	}
	r.files = hostfiles.New(hostfiles.Config{ClusterDNS: cfg.ClusterDNS, ClusterDomain: cfg.ClusterDomain, Nameserver: cfg.Nameserver, Recorder: cfg.Recorder})
	r.quietFiles = r.files.Quietly()
	r.prober = probe.New(probe.Config{Exec: cfg.Runtime.ExecSync, Changed: r.wakeWorker, Event: r.containerEvent, Pods: cfg.Pods})
	r.puller, err = image.New(image.Config{
		Images: cfg.Images, Credentials: r.pullCredentials, Dir: filepath.Join(cfg.Root, "pulls"), Event: r.containerEvent,
	})
	if err != nil {
		return nil, fmt.Errorf("pod runtime: %w", err)
	}
	r.streams = stream.New(cfg.Runtime)
	r.meter = newMeter(r.volumes.Usage, r.beginWithin)
	r.stats = r.newStats()
	r.lister = newLister(r)
	if r.collector, err = r.newCollector(); err != nil {
		return nil, err
	}
	if r.evictor, err = newEvictor(r); err != nil {
		return nil, err
	}
	return r, nil
}

// UsePodObjects sets the reader of ConfigMaps, Secrets and environments.
func (r *Runtime) UsePodObjects(objects podinputs.PodObjects) {
	r.objects = objects
	r.volumes.UseObjects(objects)
}

// UsePodTokens sets the source of service account tokens.
func (r *Runtime) UsePodTokens(tokens podinputs.PodTokens) { r.volumes.UseTokens(tokens) }

// UsePodTrustBundles sets the reader of ClusterTrustBundles.
func (r *Runtime) UsePodTrustBundles(bundles podinputs.PodTrustBundles) {
	r.volumes.UseBundles(bundles)
}

// UsePodCertificates sets the source of certificates for pods.
func (r *Runtime) UsePodCertificates(certificates podinputs.PodCertificates) {
	r.volumes.UseCertificates(certificates)
}

// UsePodClaims sets the finder of PersistentVolumes.
func (r *Runtime) UsePodClaims(claims podinputs.PodClaims) { r.volumes.UseClaims(claims) }

// ProvisionsVolumes reports whether the configuration has a directory for the node's PersistentVolumes.
func (r *Runtime) ProvisionsVolumes() bool { return r.volumes.Provisions() }

// MakeVolume makes the directory of a PersistentVolume.
func (r *Runtime) MakeVolume(_ context.Context, name string) (string, error) {
	return r.volumes.MakeVolume(name)
}

// RemoveVolume removes the directory of a PersistentVolume.
func (r *Runtime) RemoveVolume(_ context.Context, name string) error {
	return r.volumes.RemoveVolume(name)
}

// UsePullCredentials sets the source of registry credentials.
func (r *Runtime) UsePullCredentials(credentials podinputs.PullCredentials) {
	r.credentials = credentials
}

// NotifyPods sets the function for every change of a pod.
func (r *Runtime) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { r.notify = notify }

func (r *Runtime) pullCredentials(ctx context.Context, pod *corev1.Pod) ([]podinputs.RegistryCredential, error) {
	if r.credentials == nil {
		return nil, nil
	}
	return r.credentials.PullCredentials(ctx, pod)
}

// RunInBackground works on the pods until ctx ends.
func (r *Runtime) RunInBackground(ctx context.Context) error {
	lock, err := r.awaitLock(ctx)
	if lock == nil {
		return err
	}
	defer lock.Close()
	r.mu.Lock()
	r.ctx = ctx
	for _, w := range r.workers {
		r.wg.Go(func() { w.run(ctx) })
	}
	r.wg.Go(func() { r.lister.run(ctx) })
	r.wg.Go(func() { r.lister.watchEvents(ctx) })
	r.wg.Go(func() { r.cleanLeftovers(ctx) })
	r.wg.Go(func() { r.prober.Run(ctx) })
	r.wg.Go(func() { r.newRotator().Run(ctx) })
	r.wg.Go(func() { r.collector.Run(ctx) })
	r.wg.Go(func() { r.evictor.run(ctx) })
	r.wg.Go(func() { r.watchCgroups(ctx) })
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	r.ctx = nil // no work begins after this
	r.mu.Unlock()
	r.wg.Wait()
	r.cgroups.close()
	return nil
}

// newRotator keeps the logs of running containers small.
func (r *Runtime) newRotator() *crilog.Rotator {
	return &crilog.Rotator{Dir: r.logs, Reopen: r.cfg.Runtime.ReopenContainerLog, Running: r.runningLogs}
}
