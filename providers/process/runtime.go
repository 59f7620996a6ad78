// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	eventrecord "k8s.io/client-go/tools/record"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/podnet"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

var (
	_ cri.RuntimeService      = (*Runtime)(nil)
	_ cri.ImageManagerService = imageService{}
)

// Runtime implements the Container Runtime Interface. Its method Run sends events and cleans up after ended
// containers.
type Runtime struct {
	unsupported
	config Config
	// overlay is true if the root of a container is an overlay over its image instead of a copy.
	overlay bool
	cgroups cgroups
	// oci runs the containers; nil with isolation none.
	oci *ociRuntime
	// network is the pod network, or nil for the host network.
	network podNetwork
	images  *images.Store
	address string
	// nodeName is the name of the node.
	nodeName string
	// services returns the addresses that the pod network redirects; constant after the first pod.
	services func() []podnet.Service
	// recorder records the events of pods; it may be nil. Constant once Run has started.
	recorder eventrecord.EventRecorder
	lock     *os.File
	events   events
	layers   layers

	// guarded by mu
	mu         sync.Mutex
	sandboxes  map[string]*sandbox
	containers map[string]*container
	// started passes containers to Run, which waits for their end.
	started chan *container
	// leftovers are directories that must still be removed; owned by loadRecords, and afterwards by Run.
	leftovers []leftover
}

// sandbox is a pod. With runc and crun it has no process: each container has its own namespaces, and only the
// network namespace, which is bound to a file, is shared.
type sandbox struct {
	id, dir string
	config  *runtimeapi.PodSandboxConfig
	created time.Time
	// addresses are the addresses of the sandbox in the pod network, or none in the host network.
	addresses []string
	// stopped is true if the sandbox has stopped or is stopping; guarded by Runtime.mu.
	stopped bool
	// stopRecorded is true if stopped is on disk. Until then, the stop is retried; guarded by Runtime.mu.
	stopRecorded bool
	// ending is true if no more containers may start; guarded by Runtime.mu.
	ending bool
	// held is true if the sandbox may hold network resources; guarded by Runtime.mu.
	held bool
}

// Open returns the runtime in the state directory of config, with its existing containers. Pods in the host
// network get address. Only one process may use the directory.
func Open(ctx context.Context, config Config, nodeName, address string) (*Runtime, error) {
	config, err := config.completeConfig(nodeName)
	if err != nil {
		return nil, err
	}
	r := &Runtime{
		config: config, address: address, nodeName: nodeName, services: func() []podnet.Service { return []podnet.Service{} }, sandboxes: map[string]*sandbox{}, containers: map[string]*container{},
		started: make(chan *container, 1024), layers: layers{images: map[string]written{}, asked: make(chan struct{}, 1)},
	}
	for _, dir := range []string{"", "containers", "sandboxes"} {
		if err := os.MkdirAll(filepath.Join(config.StateDir, dir), 0o700); err != nil {
			return nil, fmt.Errorf("process provider: make the state directory (set stateDir): %w", err)
		}
	}
	if r.lock, err = lockDir(config.StateDir); err != nil {
		return nil, err
	}
	if err := r.openState(ctx); err != nil {
		return nil, fmt.Errorf("process provider: %w", errors.Join(err, r.Close(context.WithoutCancel(ctx))))
	}
	return r, nil
}

func (r *Runtime) openState(ctx context.Context) error {
	r.cgroups = findCgroups(r.config.CgroupParent)
	if err := r.findIsolation(ctx); err != nil {
		return err
	}
	store, err := images.Open(filepath.Join(r.config.StateDir, "images"), images.Options{
		Dirs: r.config.Images, Insecure: r.config.InsecureRegistries, Mirrors: r.config.RegistryMirrors, Own: os.Geteuid() == 0,
	})
	if err != nil {
		return err
	}
	r.images = store
	if r.network, err = r.openNetwork(ctx); err != nil {
		return err
	}
	if !r.cgroups.isUsable() {
		log.G(ctx).Warnf("process provider: limits of memory and CPU are not kept: %v", r.cgroups.why)
	}
	if err := r.loadRecords(ctx); err != nil || r.network == nil {
		return err
	}
	r.network.restoreLinks(ctx)
	return nil
}

// watchLater passes a running container to Run.
func (r *Runtime) watchLater(c *container) {
	select {
	case r.started <- c:
	default: // the queue is full only if Run does not run: every status is read from disk anyway
	}
}

// Run watches the ends of containers until ctx ends. It returns after its goroutines have ended.
func (r *Runtime) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { r.sweepAgain(ctx) })
	wg.Go(func() { r.measureLayers(ctx) })
	if r.network != nil {
		wg.Go(func() { r.network.run(ctx) })
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-r.started:
			wg.Go(func() { r.watchEnd(ctx, c) })
		}
	}
}

// watchEnd waits for the end of a container.
func (r *Runtime) watchEnd(ctx context.Context, c *container) {
	if err := shim.Wait(ctx, c.dir); err != nil {
		if ctx.Err() == nil {
			log.G(ctx).WithError(err).Errorf("process provider: wait for container %s", c.id)
		}
		return
	}
	c.reapShim()
	if state, err := shim.ReadState(c.dir); err == nil && state.Reason == shim.Unknown {
		// Clean up here: nothing else does, unless the container is being removed.
		c.working.Lock()
		err := r.discardContainer(ctx, c)
		c.working.Unlock()
		if err != nil {
			log.G(ctx).WithError(err).Errorf("process provider: remove the leftovers of container %s; its removal tries again", c.id)
		}
	}
	r.publishEvent(c.id, c.Sandbox, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
}

// Close unlocks the state directory. Containers keep running.
func (r *Runtime) Close(ctx context.Context) error {
	var err error
	if r.network != nil {
		err = r.network.close(ctx, r.networkUsed())
	}
	r.oci.close()
	return errors.Join(err, unlockDir(r.lock))
}

// Version returns the name and version of the runtime.
func (r *Runtime) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "process", RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1"}, nil
}

// Status reports whether the runtime and the network are ready, and the isolation of containers.
func (r *Runtime) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	condition := func(kind, reason, message string, ok bool) *runtimeapi.RuntimeCondition {
		return &runtimeapi.RuntimeCondition{Type: kind, Status: ok, Reason: reason, Message: message}
	}
	limits := condition("Limits", "Cgroups", "", true)
	if !r.cgroups.isUsable() {
		limits = condition("Limits", "NoCgroups", r.cgroups.why.Error(), false)
	}
	return &runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
			condition(runtimeapi.RuntimeReady, "", "", true), condition(runtimeapi.NetworkReady, "", "", true),
			condition("Isolation", "Isolation", r.Isolation(), r.isContained()), limits,
		}},
		Info:            map[string]string{"isolation": r.Isolation()},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: r.isContained()}}},
		Features:        &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: r.isContained() && os.Geteuid() == 0},
	}, nil
}

// newID returns a unique ID.
func newID() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // rand.Read never fails
	return hex.EncodeToString(b)
}

// findSandbox returns the sandbox with the ID, or with a unique prefix of it.
func (r *Runtime) findSandbox(id string) (*sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[id]; s != nil {
		return s, nil
	}
	return nil, status.Errorf(codes.NotFound, "sandbox %q not found", id)
}

func (r *Runtime) findContainer(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "container %q not found", id)
}

// containersOf returns the containers of a sandbox, oldest first; for "" it returns all containers.
func (r *Runtime) containersOf(sandbox string) []*container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*container
	for _, c := range r.containers {
		if sandbox == "" || c.Sandbox == sandbox {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *container) int { return a.Created.Compare(b.Created) })
	return all
}
