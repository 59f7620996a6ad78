// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
)

// Provider returns the provider fargate.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "fargate", Aliases: []string{"aws"},
		New: func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			if config, err = config.complete(); err != nil {
				return nil, err
			}
			return newProvider(ctx, in, config, pace{})
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
	}
}

var (
	_ nodeutil.Provider   = (*provider)(nil)
	_ node.PodNotifier    = (*provider)(nil)
	_ node.PodAuthority   = (*provider)(nil)
	_ node.PodObjectsUser = (*provider)(nil)
	_ node.PodTokensUser  = (*provider)(nil)

	_ node.PullCredentialsUser = (*provider)(nil)
	_ node.BackgroundRunner    = (*provider)(nil)
	_ node.NodeProvider        = (*provider)(nil)
	_ capability.Declarer      = (*provider)(nil)
	_ cli.NodeConfigurer       = (*provider)(nil)
	_ cli.Examiner             = (*provider)(nil)
)

// pace is how often ECS is asked; 0 is the default of each.
type pace struct{ busy, rest, idle, listEvery, seenWithin time.Duration }

// listEvery is how often all tasks are listed while nothing stops: what is known is asked about by its ARN.
const listEvery = 10 * time.Minute

// provider runs pods as tasks.
type provider struct {
	config  Config
	in      cli.ProviderInput
	service service
	mapping mapping
	cache   *poll.Cache[types.Task]
	watch   watch
	made    made
	objects node.PodObjects
	tokens  node.PodTokens

	credentials node.PullCredentials
	leftovers   leftovers
	prober      *prober
}

func newProvider(ctx context.Context, in cli.ProviderInput, config Config, pace pace) (*provider, error) {
	c, err := newClient(ctx, config)
	if err != nil {
		return nil, err
	}
	name := in.NodeName
	if in.Node != nil {
		name = in.Node.Name
	}
	p := &provider{config: config, in: in, service: c, mapping: mapping{config: config, owner: identity.Owner{Cluster: config.ClusterID, Node: name}}}
	p.prober = newProber(func(pod *corev1.Pod, container, kind, reason, message string) {
		if in.Recorder != nil {
			in.Recorder.Eventf(pod, kind, reason, "container %s: %s", container, message)
		}
	})
	p.watch.tasks, p.watch.others = map[string]*inquiry{}, map[string]bool{}
	p.leftovers.wake = make(chan struct{}, 1)
	p.made.turn = make(chan struct{}, 1)
	if pace.listEvery == 0 {
		pace.listEvery = listEvery
	}
	if pace.seenWithin == 0 {
		pace.seenWithin = doubtful
	}
	if pace.rest == 0 && config.Queue != "" {
		pace.rest = restWithQueue
	}
	p.cache = poll.New(poll.Config[types.Task]{
		List: p.list, Changed: p.changed, Identify: p.identify, Ended: ended, Pod: p.podOf, Had: p.had,
		Status: p.prober.status,
		Busy:   pace.busy, Rest: pace.rest, Idle: pace.idle, ListEvery: pace.listEvery, SeenWithin: pace.seenWithin,
	})
	p.watch.patience = pace.seenWithin
	return p, nil
}

// UsePodObjects implements node.PodObjectsUser: what it reads of Secrets is kept out of events and errors.
func (p *provider) UsePodObjects(objects node.PodObjects) { p.objects = objects }

// UsePodTokens implements node.PodTokensUser.
func (p *provider) UsePodTokens(tokens node.PodTokens) { p.tokens = tokens }

// UsePullCredentials implements node.PullCredentialsUser.
func (p *provider) UsePullCredentials(credentials node.PullCredentials) { p.credentials = credentials }

// NotifyPods implements node.PodNotifier.
func (p *provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) {
	p.cache.Notify(notify)
}

// RunInBackground implements node.BackgroundRunner. ECS is asked once the pods of the cluster are known: what its tasks are follows from those.
func (p *provider) RunInBackground(ctx context.Context) error {
	var beside sync.WaitGroup
	if p.in.Listed == nil || cache.WaitForCacheSync(ctx.Done(), p.in.Listed) {
		beside.Go(func() { p.prober.run(ctx, p.cache.Refresh) })
		beside.Go(func() { p.removeLeftovers(ctx) })
		if p.config.Queue != "" {
			beside.Go(func() { p.listen(ctx) })
		}
		p.cache.Run(ctx)
	}
	beside.Wait()
	p.service.close()
	return nil
}

// AnswersForAllPods implements node.PodAuthority: lists are complete, or none. What an earlier process ran last may come late.
func (p *provider) AnswersForAllPods() bool { return p.cache.Complete() }

// UpdatePod takes labels and annotations down. A task does not change.
func (p *provider) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.cache.Wait(ctx); err != nil {
		return fmt.Errorf("update pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	have, _, ok := p.cache.Get(pod.UID)
	if !ok {
		return errdefs.NotFoundf("update pod %s/%s: ECS has no task of the pod with the UID %s", pod.Namespace, pod.Name, pod.UID)
	}
	p.cache.Update(pod)
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; i < len(have.Spec.Containers) && have.Spec.Containers[i].Image != c.Image {
			return errdefs.InvalidInputf("update pod %s/%s: container %s: ECS cannot change the image of a task", pod.Namespace, pod.Name, c.Name)
		}
	}
	return nil
}

// deleted is why the node stops a task. A task that ended for it is none that is found again.
const deleted = "the pod was deleted in Kubernetes"

// DeletePod stops the task of a pod. The pod is there until ECS says that the task has stopped.
func (p *provider) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.cache.Wait(ctx); err != nil {
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	_, task, ok := p.cache.Get(pod.UID)
	if !ok && p.watch.doubted(pod.UID) {
		p.cache.Hurry()
		return fmt.Errorf("delete pod %s/%s: ECS was asked to run its task and has not answered: the task is looked for", pod.Namespace, pod.Name)
	}
	if !ok {
		if hasOwn(pod) {
			p.leftovers.add(p.mapping.ownName(string(pod.UID)))
		}
		return errdefs.NotFoundf("delete pod %s/%s: ECS has no task of the pod with the UID %s", pod.Namespace, pod.Name, pod.UID)
	}
	p.cache.Update(pod) // it has its DeletionTimestamp: its end is nobody's failure
	if !ended(task) && !p.watch.stopping(*task.TaskArn) {
		asked := time.Now()
		said, err := p.service.stop(ctx, *task.TaskArn, deleted)
		switch {
		case errdefs.IsNotFound(err) && !p.watch.told(*task.TaskArn) && time.Since(aws.ToTime(task.CreatedAt)) < p.watch.patience:
			p.cache.Hurry()
			return fmt.Errorf("delete pod %s/%s: ECS has taken its task and does not show it yet: it is asked again: %s", pod.Namespace, pod.Name, err.Error())
		case errdefs.IsNotFound(err): // ECS forgets a task an hour after its end
			p.cache.Forget(pod.UID)
			return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
		case err != nil:
			return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		p.watch.stop(*task.TaskArn)
		said.Tags = task.Tags
		p.leftovers.take(p.mapping, []types.Task{said})
		p.cache.Take(ctx, asked, said)
	}
	p.cache.Stopping(pod.UID)
	return nil
}

// GetPod implements node.PodLifecycleHandler.
func (p *provider) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if err := p.cache.Wait(ctx); err != nil {
		return nil, fmt.Errorf("get pod %s/%s: %w", namespace, name, err)
	}
	pod, _, err := p.cache.Find(namespace, name)
	return pod, err
}

// GetPodStatus implements node.PodLifecycleHandler.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods implements node.PodLifecycleHandler.
func (p *provider) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	if err := p.cache.Wait(ctx); err != nil {
		return nil, fmt.Errorf("get pods: %w", err)
	}
	return p.cache.All(), nil
}

// Capabilities implements capability.Declarer.
func (p *provider) Capabilities() capability.Declaration { return p.config.Capabilities() }
