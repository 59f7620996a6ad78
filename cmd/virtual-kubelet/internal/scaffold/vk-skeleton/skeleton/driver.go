// SPDX-License-Identifier: Apache-2.0

// Package skeleton runs pods on skeleton. A pod is a group of containers.
//
// The guarantees are those of package providerkit/service, which has all policies. This package has the requests of the service and their meaning. It
// keeps no state, so a restart finds all pods unchanged.
//
// Note: the generated client uses package toy.
package skeleton

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Provider returns the provider skeleton.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "skeleton",
		New: func(_ context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err == nil {
				err = config.checkFields()
			}
			if err != nil {
				return nil, err
			}
			return newProvider(in, config), nil
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
		Check: func(path string) (func(*corev1.Pod) error, error) {
			_, err := LoadConfig(path)
			return checkPod, err
		},
	}
}

// checkPod refuses a pod that Create would refuse, for reasons that depend only on the pod.
func checkPod(pod *corev1.Pod) error {
	in, err := service.Unread(identity.Owner{}, pod)
	if err == nil {
		_, err = groupOf(in)
	}
	return err
}

// newProvider returns the provider of a complete configuration.
//
// FILL(driver): set Again, the result of a repeated create at your service, and SeenWithin, the longest time until lists and Find show a new group.
// Then go through the methods below: service.Driver describes the promise of each. Remove methods that the service does not support: users then get
// your text in Instead, and TestContract reports the checks to exclude.
func newProvider(in cli.ProviderInput, config Config) *service.Provider[group] {
	d := &driver{client: newClient(config), owner: identity.Owner{Cluster: config.ClusterName, Node: in.NodeName}, every: config.every}
	d.kit = service.New(service.Config{
		Service: "skeleton", Owner: d.owner, Capabilities: config.Capabilities(), Capacity: config.Capacity, Pods: in.Pods, Listed: in.Listed,
		Again: service.AgainReturnsFirst, SeenWithin: time.Minute, Busy: config.every, Rest: config.every, Idle: config.every,
	}, d)
	return d.kit
}

// driver connects the kit to the service.
type driver struct {
	client *client
	owner  identity.Owner
	every  time.Duration // see Config
	kit    *service.Provider[group]
}

var (
	_ service.Driver[group]    = (*driver)(nil)
	_ service.Ender[group]     = (*driver)(nil)
	_ service.LogReader[group] = (*driver)(nil)
	_ service.Executor[group]  = (*driver)(nil)
	_ service.Attacher[group]  = (*driver)(nil)
	_ service.Forwarder[group] = (*driver)(nil)
	_ service.Measurer[group]  = (*driver)(nil)
	_ service.Closer           = (*driver)(nil)
)

// List implements service.Driver.
func (d *driver) List(ctx context.Context) ([]group, error) {
	return d.client.list(ctx, map[string]string{identity.TagCluster: d.owner.Cluster, identity.TagNode: d.owner.Node})
}

// Create implements service.Driver.
func (d *driver) Create(ctx context.Context, in *service.Inputs) (group, error) {
	spec, err := groupOf(in)
	if err != nil {
		return group{}, service.NotMade(err)
	}
	made, err := d.client.createGroup(ctx, in.Name, spec)
	switch {
	case isConflict(err): // a Secret in the environment of the pod has changed since the creation of the group
		return group{}, service.AlreadyMade(err)
	case isRefusal(err):
		return group{}, service.NotMade(err)
	}
	return made, err
}

// Find implements service.Driver.
func (d *driver) Find(ctx context.Context, pod *corev1.Pod) (group, bool, error) {
	found, err := d.client.get(ctx, d.owner.Name(identity.Of(pod)))
	if errdefs.IsNotFound(err) {
		return group{}, false, nil
	}
	return found, err == nil, err
}

// Stop implements service.Driver.
func (d *driver) Stop(ctx context.Context, pod *corev1.Pod, g group) error {
	return d.client.stop(ctx, g.Name, podspec.Grace(pod))
}

// Identify implements service.Driver.
func (d *driver) Identify(g group) (poll.Identity, bool) {
	pod, ok := d.owner.Owned(g.Tags)
	return poll.Identity{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ID: g.Name, CreatedAt: g.Created}, ok
}

// Status implements service.Driver.
func (d *driver) Status(pod *corev1.Pod, g group) corev1.PodStatus {
	return podstatus.Status(pod, observedPod(g))
}

// Ended implements service.Ender: a stopped group stays in lists for a while.
func (d *driver) Ended(g group) bool { return g.hasEnded() }

// Logs implements service.LogReader.
func (d *driver) Logs(ctx context.Context, of service.Target[group], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	return logs.Reread{
		Every: cmp.Or(d.every, 2*time.Second),
		Ended: func() bool { return opts.Previous || d.runEnded(of) },
		Read: func(ctx context.Context, since time.Time, _ bool) ([]logs.Line, error) {
			text, err := d.client.readLog(ctx, of.Instance.Name, of.Container, opts.Previous, since)
			return logs.Stamped(text), err
		},
	}.Open(ctx, opts, time.Now())
}

// runEnded reports whether the run of the container has ended, according to lists.
func (d *driver) runEnded(of service.Target[group]) bool {
	pod, _, ok := d.kit.Cache().Get(of.Pod.UID)
	if !ok {
		return true
	}
	c := service.StateOf(pod, of.Container)
	return c == nil || of.State == nil || c.RestartCount != of.State.RestartCount || c.State.Running == nil
}

// Exec implements service.Executor.
func (d *driver) Exec(ctx context.Context, in service.Target[group], command []string, attach api.AttachIO) error {
	code, err := d.client.execCommand(ctx, in.Instance.Name, in.Container, command, attach)
	if err == nil && code != 0 {
		err = utilexec.CodeExitError{Err: fmt.Errorf("the command ended with exit code %d", code), Code: code}
	}
	return err
}

// Attach implements service.Attacher: it shows the output of a container from now on. It takes no input, because InteractiveContainers is not
// declared.
func (d *driver) Attach(ctx context.Context, to service.Target[group], attach api.AttachIO) error {
	lines, err := d.Logs(ctx, to, api.ContainerLogOpts{Follow: true, SinceTime: time.Now()})
	if err != nil {
		return err
	}
	defer lines.Close()
	if attach.Stdout() == nil {
		return nil
	}
	_, err = io.Copy(attach.Stdout(), lines)
	return err
}

// Forward implements service.Forwarder: it connects to the address of the group.
func (d *driver) Forward(ctx context.Context, to service.Target[group], port int32, stream io.ReadWriteCloser) error {
	return service.ForwardByDial(ctx, nil, to.Pod, port, stream)
}

// Stats implements service.Measurer.
//
// FILL(stats): fill in the measurements of your service. Without them, kubectl top shows nothing.
func (d *driver) Stats(_ context.Context, of []service.Target[group]) (all []statsv1alpha1.PodStats, _ error) {
	for _, t := range of {
		pod := statsv1alpha1.PodStats{
			PodRef:    statsv1alpha1.PodReference{Name: t.Pod.Name, Namespace: t.Pod.Namespace, UID: string(t.Pod.UID)},
			StartTime: metav1.NewTime(t.Instance.Created),
		}
		for _, c := range t.Instance.Containers {
			if c.State == stateRunning {
				pod.Containers = append(pod.Containers, statsv1alpha1.ContainerStats{Name: c.Name, StartTime: metav1.NewTime(c.Run.Started)})
			}
		}
		if len(pod.Containers) > 0 {
			all = append(all, pod)
		}
	}
	return all, nil
}

// Close implements service.Closer.
func (d *driver) Close() { d.client.http.CloseIdleConnections() }
