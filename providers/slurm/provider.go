// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// Provider returns the provider slurm.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "slurm",
		New: func(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			return newProvider(in, config)
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
	}
}

var (
	_ nodeutil.Provider        = (*provider)(nil)
	_ node.PodNotifier         = (*provider)(nil)
	_ node.PodAuthority        = (*provider)(nil)
	_ node.PodObjectsUser      = (*provider)(nil)
	_ node.PodTokensUser       = (*provider)(nil)
	_ node.PullCredentialsUser = (*provider)(nil)
	_ node.BackgroundRunner    = (*provider)(nil)
	_ node.NodeProvider        = (*provider)(nil)
	_ capability.Declarer      = (*provider)(nil)
	_ cli.NodeConfigurer       = (*provider)(nil)
	_ cli.Examiner             = (*provider)(nil)
)

// provider runs pods as jobs. It is safe for concurrent use.
type provider struct {
	config Config
	in     cli.ProviderInput
	slurm  service
	place  place

	// set before any pod comes
	objects     node.PodObjects
	tokens      node.PodTokens
	credentials node.PullCredentials
	notify      func(*corev1.Pod)

	settle time.Duration // see settleTime

	wake    chan struct{} // something changed: look soon
	listed  chan struct{} // closed after the first list
	telling chan struct{} // has room while no job is being told anything

	reporting sync.Mutex // held while pods are reported, before mu

	mu   sync.Mutex
	pods map[types.UID]*tracked // guarded by mu
	// guarded by mu: why Slurm cannot be asked, and why the partition takes no jobs
	listErr, down error
	away          error     // guarded by mu: why what jobs wrote cannot be read
	filesAt       time.Time // guarded by mu: when all of it was last begun to be read
	// guarded by mu: when Slurm was last asked, and the files were looked at, whatever came of it
	listsAt, readAt time.Time
	changed         time.Time // guarded by mu: of anything
	doubled         []int     // guarded by mu: second jobs of pods, to be cancelled
	nodeChanged     func(*corev1.Node)
	offered, told   corev1.ResourceList // guarded by mu: what the partition has, and what of that the node was told
	node            *corev1.Node        // guarded by mu: as it was made
}

// tracked is a pod with its job. Its fields are guarded by provider.mu.
type tracked struct {
	pod       *corev1.Pod
	id        identity
	job       queued
	submitted time.Time // by this process; zero for one that was found
	said      *job.Status
	seen      os.FileInfo // of the file; nil: there was none
	missing   int         // complete lists in a row without the job
	missingAt time.Time   // the first of them
	askAt     time.Time   // when the accounting is asked again
	forgotten bool        // no list shows the job, its state is not of one
	overAt    time.Time   // when its job was first seen to be over
	status    corev1.PodStatus
	reported  bool
	newsSince time.Time // of what was not reported yet; zero for nothing
	stop      *stopping
	renewAt   time.Time // of tokens; zero for none
}

func newProvider(in cli.ProviderInput, config Config) (*provider, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "linux" {
		return nil, errors.New("slurm provider: it runs on Linux only: jobs run the same program")
	}
	p := &provider{
		config: config, in: in, slurm: config.service(),
		place: place{root: filepath.Join(config.SharedDir, config.ClusterName, in.Node.Name), shared: config.SharedDir},
		wake:  make(chan struct{}, 1), listed: make(chan struct{}), telling: make(chan struct{}, 1), pods: map[types.UID]*tracked{},
		notify: func(*corev1.Pod) {}, settle: settleTime,
	}
	return p, p.place.prepare(config.program)
}

// UsePodObjects implements node.PodObjectsUser.
func (p *provider) UsePodObjects(o node.PodObjects) { p.objects = o }

// UsePodTokens implements node.PodTokensUser.
func (p *provider) UsePodTokens(t node.PodTokens) { p.tokens = t }

// UsePullCredentials implements node.PullCredentialsUser.
func (p *provider) UsePullCredentials(c node.PullCredentials) { p.credentials = c }

// NotifyPods implements node.PodNotifier.
func (p *provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { p.notify = notify }

// AnswersForAllPods implements node.PodAuthority: nothing is answered before the first complete list, and a pod is missing after several only.
func (p *provider) AnswersForAllPods() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.listErr, p.away, p.stuck()) == nil
}

// Capabilities implements capability.Declarer.
func (p *provider) Capabilities() capability.Declaration { return p.config.Capabilities() }

// CreatePod submits the job of a pod. One that was submitted before, by whomever, is found instead.
func (p *provider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.known(ctx); err != nil {
		return err
	}
	if !isUID(pod.UID) {
		return errdefs.InvalidInputf("%q cannot be a UID", pod.UID)
	}
	id := identity{p.config.ClusterName, p.in.Node.Name, pod.Namespace, pod.Name, pod.UID}
	p.mu.Lock()
	for _, t := range p.pods {
		if t.id == id {
			t.pod = pod
			p.mu.Unlock()
			return nil
		}
		if t.id.Namespace == id.Namespace && t.id.Name == id.Name && t.stop == nil {
			p.mu.Unlock()
			return errdefs.InvalidInputf("the pod with UID %s has this name until it is deleted", t.id.UID)
		}
	}
	p.mu.Unlock()
	args, err := p.config.submission(pod, id, p.place.pod(pod.UID), p.place.program, p.place.script)
	if err != nil {
		return err
	}
	bundle, renewAt, err := p.bundle(ctx, pod)
	if err != nil {
		return err
	}
	before, err := p.place.write(pod.UID, bundle)
	if err != nil {
		return err
	}
	t := &tracked{pod: pod, id: id, submitted: time.Now(), renewAt: renewAt}
	if before { // an earlier submission may have succeeded
		found, err := p.slurm.jobs(ctx, "--name="+jobName(pod.UID))
		if err != nil {
			return fmt.Errorf("look for its job: %w", err)
		}
		if len(found) > 0 {
			t.job = found[0]
		}
	}
	if t.job.ID == 0 {
		number, err := p.slurm.submit(ctx, args)
		if err != nil {
			if !before && !unclear(err) {
				_ = p.place.remove(pod.UID) // nothing of it is at Slurm
			}
			return err
		}
		t.job = queued{ID: number, State: "PENDING", Submitted: t.submitted}
	}
	p.mu.Lock()
	p.pods[pod.UID] = t
	p.refresh(t)
	p.mu.Unlock()
	p.look()
	if without := p.config.withoutEffect(pod); without != "" && p.in.Recorder != nil {
		p.in.Recorder.Event(pod, corev1.EventTypeWarning, "AnnotationsWithoutEffect", without)
	}
	return p.place.submitted(pod.UID, t.job.ID)
}

// UpdatePod takes over what is new of the pod, and of what it mounts.
func (p *provider) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.known(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	t := p.pods[pod.UID]
	if t != nil {
		t.pod = pod
	}
	p.mu.Unlock()
	if t == nil {
		return notFound(pod.Namespace, pod.Name)
	}
	return p.renew(ctx, t)
}

// DeletePod tells the job of a pod to stop it within its grace period, and returns.
func (p *provider) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.known(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	t := p.pods[pod.UID]
	if pod.UID == "" {
		t = p.find(pod.Namespace, pod.Name)
	}
	if t == nil {
		p.mu.Unlock()
		var err error
		if t, err = p.lookUp(ctx, pod); err != nil {
			return err
		}
		p.mu.Lock()
		p.pods[pod.UID] = t
		p.refresh(t)
	}
	// Asked again, the pod has no more time than before.
	if until := time.Now().Add(podspec.Grace(pod) + endTime); t.stop == nil || until.Before(t.stop.until) {
		t.stop = &stopping{until: until}
	}
	uid, until := t.id.UID, t.stop.until
	p.mu.Unlock()
	grace := max(0, time.Until(until)-endTime).Round(time.Second)
	stop := job.Stop{GraceSeconds: int64(grace / time.Second), Until: until}
	if err := job.WriteJSON(filepath.Join(p.place.pod(uid), job.StopFile), stop); err != nil && !os.IsNotExist(err) {
		return err
	}
	p.look()
	return nil
}

// lookUp finds the job of a pod that was submitted without an answer. Without one that lives, nothing of the pod is left.
func (p *provider) lookUp(ctx context.Context, pod *corev1.Pod) (*tracked, error) {
	if !isUID(pod.UID) {
		return nil, notFound(pod.Namespace, pod.Name)
	}
	if _, err := os.Lstat(p.place.pod(pod.UID)); os.IsNotExist(err) {
		return nil, notFound(pod.Namespace, pod.Name) // a job could not run without it
	}
	found, err := p.slurm.jobs(ctx, "--name="+jobName(pod.UID))
	if err != nil {
		return nil, fmt.Errorf("look for its job: %w", err)
	}
	var t *tracked
	var others []int
	for _, q := range found {
		switch {
		case ended[q.State] != "":
		case t == nil:
			t = &tracked{pod: pod, id: identity{p.config.ClusterName, p.in.Node.Name, pod.Namespace, pod.Name, pod.UID}, job: q}
		default:
			others = append(others, q.ID)
		}
	}
	if err := p.slurm.cancel(ctx, others); err != nil {
		return nil, err
	}
	if t != nil {
		return t, nil
	}
	if err := p.place.remove(pod.UID); err != nil {
		return nil, err
	}
	return nil, notFound(pod.Namespace, pod.Name)
}

// isUID tells whether uid can name a directory.
func isUID(uid types.UID) bool {
	return filepath.IsLocal(string(uid)) && filepath.Base(string(uid)) == string(uid) && uid != "."
}

// endTime is how long a job may take to end after the grace period of its pod.
const endTime = 20 * time.Second

// GetPod returns a pod with its status.
func (p *provider) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if err := p.known(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.find(namespace, name); t != nil {
		return t.snapshot(), nil
	}
	return nil, notFound(namespace, name)
}

// GetPodStatus returns the status of a pod.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns all pods.
func (p *provider) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	if err := p.known(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listErr != nil {
		return nil, fmt.Errorf("list pods: %w", p.listErr)
	}
	var all []*corev1.Pod
	for _, t := range p.pods {
		if p.find(t.id.Namespace, t.id.Name) == t {
			all = append(all, t.snapshot())
		}
	}
	return all, nil
}

// known waits until it is known which jobs there are.
func (p *provider) known(ctx context.Context) error {
	select {
	case <-p.listed:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		return fmt.Errorf("no list of the jobs of Slurm yet: %w", errors.Join(ctx.Err(), p.listErr))
	}
}

// find returns the pod of that name: of several, the one that is not to stop, as the others have been followed by it. The caller holds mu.
func (p *provider) find(namespace, name string) (found *tracked) {
	for _, t := range p.pods {
		if t.id.Namespace != namespace || t.id.Name != name {
			continue
		}
		if found == nil || t.stop == nil || found.stop != nil && t.id.UID < found.id.UID {
			found = t
		}
	}
	return found
}

// snapshot is a copy with the status. The caller holds mu.
func (t *tracked) snapshot() *corev1.Pod {
	pod := t.pod.DeepCopy()
	pod.Status = *t.status.DeepCopy()
	pod.Status.QOSClass = t.pod.Status.QOSClass
	return pod
}

func notFound(namespace, name string) error {
	return errdefs.NotFoundf("pod %s/%s has no job", namespace, name)
}
