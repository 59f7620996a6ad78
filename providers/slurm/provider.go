// SPDX-License-Identifier: Apache-2.0

// Package slurm is a provider that runs each pod as a job of Slurm, with no server in between.
//
// The guarantee: a pod is one job. The comment of the job identifies its pod. If a pod has two jobs, the second
// job does nothing. All text of users goes through files that only the user of the job can read: the script is
// the same for all pods.
//
// Note: the job runs this same program, which it finds on the shared file system. Containers are
// programs of the job's node, or of an image of podman on that node, with the volumes of the pod mounted in
// namespaces of their own.
package slurm

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	kitidentity "github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/configured"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/pack"
)

//go:embed README.md
var readme string

// Provider returns the provider slurm.
func Provider() cli.Provider {
	return configured.Provider(cli.Provider{Name: "slurm", Readme: readme}, configured.Steps[Config]{
		Load: LoadConfig, Complete: Config.complete, Capabilities: Config.Capabilities,
		New: func(_ context.Context, in cli.ProviderInput, config Config) (nodeutil.Provider, error) {
			d, err := newDriver(in, config)
			if err != nil {
				return nil, err
			}
			return d.provider, nil
		},
		Check: func(config Config) func(*corev1.Pod) error { return config.check },
	})
}

// settleTime bounds the time until the last status of an ended job is visible: a shared file system may show
// older content.
const settleTime = time.Minute

// driver runs pods as jobs. It merges the reports of Slurm with the status files on the shared file system. It
// is safe for concurrent use.
type driver struct {
	pack.Streams[*instance]

	config   Config
	in       cli.ProviderInput
	slurm    slurm
	place    place
	provider *service.Provider[*instance]

	settle time.Duration // see settleTime

	wake    chan struct{} // signals a change, so that the next list is soon
	telling chan struct{} // has room while no order is sent to a job

	reporting sync.Mutex // held during reports to the provider, before mu

	mu   sync.Mutex
	pods map[types.UID]*tracked // guarded by mu
	// guarded by mu: why requests to Slurm fail, and why the partition takes no jobs
	listErr, down error
	away          error     // guarded by mu: the reason why the files of jobs cannot be read
	filesAt       time.Time // guarded by mu: the beginning of the last complete read
	// guarded by mu: the last requests to Slurm, and the last reads of files, whatever their results
	listsAt, readAt time.Time
	changed         time.Time // guarded by mu: of anything
	doubled         []int     // guarded by mu: second jobs of pods, to be cancelled
}

var (
	_ service.Driver[*instance]    = (*driver)(nil)
	_ service.Follower             = (*driver)(nil)
	_ service.Updater[*instance]   = (*driver)(nil)
	_ service.Renewer[*instance]   = (*driver)(nil)
	_ service.Mourner              = (*driver)(nil)
	_ service.LogReader[*instance] = (*driver)(nil)
	_ service.Executor[*instance]  = (*driver)(nil)
	_ service.Attacher[*instance]  = (*driver)(nil)
	_ service.Forwarder[*instance] = (*driver)(nil)
	_ service.Pinger               = (*driver)(nil)
	_ service.NodeConfigurer       = (*driver)(nil)
	_ service.Examiner             = (*driver)(nil)
	_ service.Closer               = (*driver)(nil)
)

// tracked is a pod with its job. Its fields are guarded by driver.mu.
type tracked struct {
	id        identity
	job       queued
	submitted time.Time // when this process submitted the job; zero for a found job
	said      *podjob.Status
	seen      os.FileInfo // of the file; nil: there was none
	missing   int         // consecutive complete lists without the job
	missingAt time.Time   // the time of the first of these lists
	askAt     time.Time   // the time of the next request to the accounting
	forgotten bool        // no list shows the job; its state comes from elsewhere
	overAt    time.Time   // when its job was first seen to be over
	shown     instance
	reported  bool
	stop      *stopping
}

// stopping is the state of a pod that must stop.
type stopping struct {
	until time.Time // the grace period and some time to end
	next  time.Time // the time of the next order to its job
	tries int       // number of orders so far
	told  bool      // the job has the order
	ended bool      // a lost job was cancelled, because it may still run
	late  bool      // its time is up
}

// newDriver returns the driver for a complete configuration, with its provider.
func newDriver(in cli.ProviderInput, config Config) (*driver, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("slurm provider: it runs on Linux only: jobs run the same program")
	}
	d := &driver{
		config: config, in: in, slurm: config.slurm(), place: place{root: filepath.Join(config.SharedDir, config.ClusterName, in.Node.Name), shared: config.SharedDir},
		wake: make(chan struct{}, 1), telling: make(chan struct{}, 1), pods: map[types.UID]*tracked{}, settle: settleTime,
	}
	d.serve()
	return d, d.place.prepare(config.program)
}

// seenWithin bounds the time until a job appears whose submission had no answer.
const seenWithin = 30 * time.Second

// serve sets the streams and the provider of the driver.
func (d *driver) serve() {
	d.Streams = func(ctx context.Context, i *instance, req podjob.Request, e podjob.Ends) error {
		return streamIn(ctx, d.slurm, d.place.program, i, req, e)
	}
	d.provider = service.New(service.Config{
		Service: "Slurm", Owner: kitidentity.Owner{Cluster: d.config.ClusterName, Node: d.in.Node.Name}, Capabilities: d.config.Capabilities(),
		Pods: d.in.Pods, Listed: d.in.Listed, Again: service.AgainReturnsFirst, SeenWithin: seenWithin, EarlierWithin: -1, Brief: lasting,
		LogsUnseen: true, Skips: func(*corev1.Volume) bool { return true }, // jobs write them, from the objects
	}, d)
}

// lasting is the minimum age of Slurm's state of a waiting job before it is reported. Most jobs begin earlier, and a write for each
// state would delay more important writes.
const lasting = 2 * time.Second

// Identify implements service.Driver.
func (d *driver) Identify(i *instance) (poll.Identity, bool) {
	return poll.Identity{Namespace: i.id.Namespace, Name: i.id.Name, UID: i.id.UID, ID: jobName(i.id.UID)}, true
}

// Status implements service.Driver.
func (d *driver) Status(pod *corev1.Pod, i *instance) corev1.PodStatus {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return pod.Status // the final status stays
	}
	q := i.job
	if i.unsettled {
		q.State = "COMPLETING"
	}
	s := statusOf(pod, q, i.said)
	s.QOSClass = pod.Status.QOSClass
	return s
}

// Close implements service.Closer.
func (d *driver) Close() { d.slurm.close() }

// isUID reports whether uid can name a directory.
func isUID(uid types.UID) bool {
	return filepath.IsLocal(string(uid)) && filepath.Base(string(uid)) == string(uid) && uid != "."
}

// look records a change, so that the next list is soon.
func (d *driver) look() {
	d.mu.Lock()
	d.changed = time.Now()
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}
