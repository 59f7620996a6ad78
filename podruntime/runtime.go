// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

var (
	_ nodeutil.Provider        = (*Runtime)(nil)
	_ node.PodNotifier         = (*Runtime)(nil)
	_ node.PodObjectsUser      = (*Runtime)(nil)
	_ node.PodTokensUser       = (*Runtime)(nil)
	_ node.PullCredentialsUser = (*Runtime)(nil)
	_ node.BackgroundRunner    = (*Runtime)(nil)
	_ node.NodeProvider        = (*Runtime)(nil)
)

// Runtime is a provider that runs pods on a runtime of containers. New makes it.
type Runtime struct {
	cfg Config

	// Set before any pod comes, constant afterwards.
	objects     node.PodObjects
	tokens      node.PodTokens
	credentials node.PullCredentials
	notify      func(*corev1.Pod)

	mu      sync.Mutex
	workers map[types.UID]*worker // guarded by mu
}

// worker owns one pod.
type worker struct{}

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
	return &Runtime{cfg: cfg, workers: map[types.UID]*worker{}}, nil
}

// UsePodObjects takes what reads ConfigMaps, Secrets and environments.
func (r *Runtime) UsePodObjects(objects node.PodObjects) { r.objects = objects }

// UsePodTokens takes what gives tokens of service accounts.
func (r *Runtime) UsePodTokens(tokens node.PodTokens) { r.tokens = tokens }

// UsePullCredentials takes what gives credentials for registries.
func (r *Runtime) UsePullCredentials(credentials node.PullCredentials) { r.credentials = credentials }

// NotifyPods takes the function that is told of every change of a pod.
func (r *Runtime) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { r.notify = notify }

// RunInBackground works on the pods until ctx ends.
func (r *Runtime) RunInBackground(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
