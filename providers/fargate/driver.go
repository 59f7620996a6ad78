// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

const (
	// listEvery is the interval of lists of all tasks while nothing stops. Requests for known tasks use their
	// ARNs.
	listEvery = 10 * time.Minute
	// restWithQueue is the polling interval with a queue while no task is in transition. Polling finds the changes that the queue lost.
	restWithQueue = 30 * time.Second
)

// deleted is the reason with which the node stops the task of a deleted pod. A task that ended for this reason is not adopted again.
const deleted = "the pod was deleted in Kubernetes"

// driver runs pods as tasks.
type driver struct {
	config    Config
	client    *client
	mapping   mapping
	pods      corev1listers.PodLister // of the cluster; nil: unknown
	recorder  record.EventRecorder    // nil: no events are recorded
	kit       *service.Provider[ecstypes.Task]
	inquiries inquiries
	things    things
	sweeper   struct {
		every time.Duration
		now   func() time.Time
	}
}

var (
	_ service.Driver[ecstypes.Task]       = (*driver)(nil)
	_ service.Ender[ecstypes.Task]        = (*driver)(nil)
	_ service.ChangeLister[ecstypes.Task] = (*driver)(nil)
	_ service.LogReader[ecstypes.Task]    = (*driver)(nil)
	_ service.Executor[ecstypes.Task]     = (*driver)(nil)
	_ service.Forwarder[ecstypes.Task]    = (*driver)(nil)
	_ service.Measurer[ecstypes.Task]     = (*driver)(nil)
	_ service.Prober[ecstypes.Task]       = (*driver)(nil)
	_ service.Remover                     = (*driver)(nil)
	_ service.Mourner                     = (*driver)(nil)
	_ service.Worker                      = (*driver)(nil)
	_ service.Closer                      = (*driver)(nil)
	_ service.NodeConfigurer              = (*driver)(nil)
	_ service.Examiner                    = (*driver)(nil)
)

// newDriver returns a driver with its provider. conf may set intervals; others have their defaults.
func newDriver(ctx context.Context, in cli.ProviderInput, config Config, conf service.Config) (*driver, error) {
	c, err := newClient(ctx, config)
	if err != nil {
		return nil, err
	}
	owner := identity.Owner{Cluster: config.ClusterID, Node: in.NodeName}
	if in.Node != nil {
		owner.Node = in.Node.Name
	}
	d := &driver{config: config, client: c, mapping: mapping{config: config, owner: owner}, pods: in.Pods, recorder: in.Recorder, things: newThings()}
	d.sweeper.every, d.sweeper.now = sweepEvery, time.Now
	conf.Service, conf.Owner, conf.Capabilities, conf.Capacity = "ECS", owner, config.Capabilities(), config.Capacity
	conf.Pods, conf.Listed, conf.Again, conf.LogsUnseen = in.Pods, in.Listed, service.AgainReturnsFirst, true
	conf.Claims = true
	conf.Instead = map[service.Request]string{service.Attach: "follow its log"}
	conf.Probes, conf.Recorder, conf.ExecProbeEvery = probe.Make, in.Recorder, config.ExecProbeEvery.Duration
	conf.ListEvery = cmp.Or(conf.ListEvery, listEvery)
	if config.Queue != "" {
		conf.Rest = cmp.Or(conf.Rest, restWithQueue)
	}
	d.kit = service.New(conf, d)
	return d, nil
}

// Refuse implements service.Refuser.
func (d *driver) Refuse(pod *corev1.Pod) error { return refuse(pod) }

// Create implements service.Driver. A repeated create gives the same task: ECS recognizes the request by its
// token.
func (d *driver) Create(ctx context.Context, in *service.Inputs) (ecstypes.Task, error) {
	request, err := d.prepare(ctx, in)
	if err != nil {
		return ecstypes.Task{}, service.NotMade(err)
	}
	task, err := d.client.run(ctx, request)
	if wasRefused(err) {
		d.things.loseShared() // a remembered object may have been removed
	}
	switch {
	case saysAgain(err):
		return task, service.AlreadyMade(err)
	case saysNo(err):
		return task, service.NotMade(err)
	}
	if s := in.Pod.Spec.TerminationGracePeriodSeconds; err == nil && s != nil && *s < minGrace && d.recorder != nil {
		d.recorder.Eventf(in.Pod, corev1.EventTypeWarning, "GracePeriodRaised", "spec.terminationGracePeriodSeconds: %d: Fargate takes %d to %d: containers have %d", *s, minGrace, maxGrace, minGrace)
	}
	task.Tags = request.Tags
	return task, err
}

// prepare stores the secrets of a pod, registers its definition, and returns the request for its task.
func (d *driver) prepare(ctx context.Context, in *service.Inputs) (*ecs.RunTaskInput, error) {
	request, err := d.mapping.task(in.Pod, "")
	if err != nil {
		return nil, err
	}
	arns, err := d.keep(ctx, in)
	if err != nil {
		return nil, err
	}
	definition, err := d.mapping.definition(in, arns)
	if err != nil {
		return nil, err
	}
	// A removal first checks whether the thing is used, and a new use waits for the end of a removal.
	name := definitionThing + *definition.Family
	d.things.know(*definition.Family, definition.ContainerDefinitions)
	d.things.useDefinition(d.sweeper.now(), *definition.Family)
	if err := d.kit.Keep(ctx, name); err != nil {
		return nil, err
	}
	// Look for the definition first, because ECS accepts about one registration a second.
	arn, err := d.things.once(ctx, name, func() (string, error) {
		known, err := d.client.describeDefinition(ctx, *definition.Family)
		if errdefs.IsNotFound(err) {
			return d.client.register(ctx, definition)
		}
		if err != nil {
			return "", err
		}
		return aws.ToString(known.TaskDefinitionArn), nil
	})
	request.TaskDefinition = &arn
	return request, err
}

// keep stores the secrets of a pod, and returns their ARNs by purpose.
func (d *driver) keep(ctx context.Context, in *service.Inputs) (map[string]string, error) {
	if !needsSecrets(in) {
		return nil, nil
	}
	key, err := d.key(ctx)
	if err != nil {
		return nil, err
	}
	secrets, err := vault{config: d.config, owner: d.mapping.owner, key: key}.secrets(in)
	if err != nil {
		return nil, err
	}
	arns := map[string]string{}
	for as, s := range secrets {
		in.Hide(s.text)
		d.things.use(d.sweeper.now(), s.name)
		if err := d.kit.Keep(ctx, s.name); err != nil { // an earlier create may have left the secret
			return nil, err
		}
		keep := func() (string, error) { return d.client.keep(ctx, s) }
		if s.own {
			arns[as], err = d.things.mine(s, keep)
		} else {
			arns[as], err = d.things.once(ctx, s.name, keep)
		}
		if err != nil {
			return nil, err
		}
	}
	return arns, nil
}

// key returns the key for the names of secrets. Only Secrets Manager stores the key.
func (d *driver) key(ctx context.Context) ([]byte, error) {
	key, err := d.things.once(ctx, keyOf(d.mapping.owner.Cluster), func() (string, error) {
		key, err := d.client.key(ctx, d.mapping.owner.Cluster)
		return string(key), err
	})
	return []byte(key), err
}

// Gone implements service.Mourner. It gives up the secrets and the definition of the pod, which may exist even without a task.
func (d *driver) Gone(pod *corev1.Pod) {
	for _, name := range ownSecrets(d.mapping.owner, pod) {
		d.leave(name)
	}
	for _, definition := range d.things.withPrefix(definitionThing + ownName(d.mapping.owner, pod.UID) + "-") {
		d.leave(definition)
	}
}

// ownOf returns the name of the secret of the single pod that a thing belongs to, or "" if pods share the thing.
func (d *driver) ownOf(name string) string {
	prefix := ownPrefix(d.mapping.owner)
	if n := len(ownName(d.mapping.owner, "")); strings.HasPrefix(name, prefix) && len(name) >= n {
		return name[:n]
	}
	return ""
}

// stays reports whether a thing was used a short time ago and must stay.
func (d *driver) stays(now time.Time, thing string, used time.Time) bool {
	keep := sharedFor
	if d.ownOf(strings.TrimPrefix(thing, definitionThing)) != "" {
		keep = ownFor
	}
	return now.Sub(used) < keep
}

// leave gives up a thing that nothing uses any more, so that it is removed.
func (d *driver) leave(name string) {
	d.things.set(name, func(one *thing) { one.used, one.secrets = time.Time{}, nil })
	d.kit.Leave(name)
}

// Remove implements service.Remover. It removes a definition or a secret, unless it was used meanwhile.
func (d *driver) Remove(ctx context.Context, name string) error {
	if d.stays(d.sweeper.now(), name, d.things.get(name).used) {
		return nil
	}
	d.things.lose(name)
	if family, ok := strings.CutPrefix(name, definitionThing); ok {
		return d.client.removeDefinition(ctx, family)
	}
	return d.client.drop(ctx, name)
}

// podsOfCluster returns the known pods of this node.
func (d *driver) podsOfCluster() []*corev1.Pod {
	if d.pods == nil {
		return nil
	}
	pods, _ := d.pods.List(labels.Everything()) // the lister is a cache, and never fails
	return pods
}

// Identify implements service.Driver by the tags of a task. StopTask deletes these tags, and describe has
// restored them.
func (d *driver) Identify(t ecstypes.Task) (poll.Identity, bool) {
	pod, ours := d.mapping.owner.Owned(tagsOf(t))
	return poll.Identity{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ID: aws.ToString(t.TaskArn), CreatedAt: aws.ToTime(t.CreatedAt),
	}, ours
}

func tagsOf(t ecstypes.Task) map[string]string {
	tags := map[string]string{}
	for _, tag := range t.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return tags
}

// Status implements service.Driver.
func (d *driver) Status(pod *corev1.Pod, t ecstypes.Task) corev1.PodStatus {
	return podstatus.Status(pod, observe(pod, t))
}

// Ended implements service.Ender.
func (d *driver) Ended(t ecstypes.Task) bool { return ended(t) }
