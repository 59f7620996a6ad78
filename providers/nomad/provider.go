// SPDX-License-Identifier: Apache-2.0

// Package nomad is a provider that runs pods on a HashiCorp Nomad cluster: a pod is a job with one group, and a
// container is a task.
//
// The guarantee: a pod is one job, whose ID follows from its UID, and one allocation. Nomad replaces the
// allocation only after a drain, a preemption or a stop of the allocation, and the provider then stops the job.
// Values of Secrets and tokens are in a Nomad Variable that only the tasks of the job can read, never in the
// job. One event stream delivers the changes at Nomad for all pods.
//
// Note: the drivers exec and raw_exec have no images, so their containers need a command. A container
// that has failed for good ends the other containers of its pod: this is Nomad's rule for the tasks of a group.
package nomad

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/configured"
)

//go:embed README.md
var readme string

// Provider returns the provider nomad.
func Provider() cli.Provider {
	return configured.Provider(cli.Provider{Name: "nomad", Readme: readme}, configured.Steps[Config]{
		Load: LoadConfig, Complete: Config.complete,
		Capabilities: func(config Config) capability.Declaration {
			config.defaults()
			return config.Capabilities()
		},
		New: func(_ context.Context, in cli.ProviderInput, config Config) (nodeutil.Provider, error) {
			d, err := newDriver(in, config)
			if err != nil {
				return nil, err
			}
			return d.provider, nil
		},
		Check: func(config Config) func(*corev1.Pod) error { return mapping{config: config}.check },
	})
}

// driver runs pods at Nomad. One event stream delivers the changes into a store that the pods of the provider
// follow.
type driver struct {
	config   Config
	client   *client
	mapping  mapping
	store    *store
	provider *service.Provider[*instance]

	relist    chan struct{}
	known     chan struct{} // closed with the first answer about clients
	knownOnce sync.Once
	unused    map[string]uint64 // Variables that the last sweep found without a job, with their index; owned by sweep

	telling sync.Mutex // held during calls of the provider, before the lock of the store, so that the calls are in the order of the changes

	mu         sync.Mutex
	down       error // guarded by mu: why there is no stream
	listError  error // guarded by mu: why the last list failed
	place      place // guarded by mu
	placeError error // guarded by mu: why place is not known
}

var (
	_ service.Driver[*instance]    = (*driver)(nil)
	_ service.Follower             = (*driver)(nil)
	_ service.Renewer[*instance]   = (*driver)(nil)
	_ service.LogReader[*instance] = (*driver)(nil)
	_ service.Executor[*instance]  = (*driver)(nil)
	_ service.Forwarder[*instance] = (*driver)(nil)
	_ service.Measurer[*instance]  = (*driver)(nil)
	_ service.Restarter[*instance] = (*driver)(nil)
	_ service.Prober[*instance]    = (*driver)(nil)
	_ service.Pinger               = (*driver)(nil)
	_ service.NodeConfigurer       = (*driver)(nil)
	_ service.Examiner             = (*driver)(nil)
	_ service.Closer               = (*driver)(nil)
)

// seenWithin bounds the time until a job appears whose submission had no answer.
const seenWithin = 10 * time.Second

// newDriver returns the driver for a complete configuration, with its provider.
func newDriver(in cli.ProviderInput, config Config) (*driver, error) {
	c, err := newClient(config)
	if err != nil {
		return nil, err
	}
	o := owner{cluster: config.ClusterName, node: in.NodeName}
	d := &driver{
		config: config, client: c, mapping: mapping{config: config, owner: o}, store: newStore(o),
		relist: make(chan struct{}, 1), known: make(chan struct{}),
		down: errors.New("no answer of Nomad yet"), placeError: errors.New("no list of the clients of Nomad yet"),
	}
	d.provider = service.New(service.Config{
		Service: "Nomad", Owner: identity.Owner{Cluster: config.ClusterName, Node: in.NodeName}, Capabilities: config.Capabilities(),
		Pods: in.Pods, Listed: in.Listed, Again: service.AgainReturnsFirst, SeenWithin: seenWithin, EarlierWithin: -1, NoLogins: true,
		Instead: map[service.Request]string{service.Attach: "use exec or logs"},
		Probes:  probe.Make, Recorder: in.Recorder,
		Allocatable: func() corev1.ResourceList { found, _ := d.found(); return found.capacity(config) },
	}, d)
	return d, nil
}

// Identify implements service.Driver.
func (d *driver) Identify(i *instance) (poll.Identity, bool) {
	return poll.Identity{Namespace: i.pod.Namespace, Name: i.pod.Name, UID: i.pod.UID, ID: i.jobID, CreatedAt: i.submitted}, true
}

// Status implements service.Driver.
func (d *driver) Status(pod *corev1.Pod, i *instance) corev1.PodStatus {
	return podstatus.Status(pod, observe(pod, i.seen))
}

// outdated returns why the known states of pods may be old, or nil if they are current.
func (d *driver) outdated() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return cmp.Or(d.down, d.listError)
}

// setOutdated records in down or listError why there is no stream, or why the last list failed. Nil means that there is no problem.
func (d *driver) setOutdated(why *error, err error) {
	d.mu.Lock()
	*why = err
	d.mu.Unlock()
	d.provider.Cache().Fails(d.outdated())
}

// Close implements service.Closer.
func (d *driver) Close() { d.client.http.CloseIdleConnections() }

// found returns the clients' resources, or why they are unknown.
func (d *driver) found() (place, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.place, d.placeError
}
