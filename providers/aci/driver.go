// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	probes "github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

// followEvery is the interval of reads of a followed log.
const followEvery = 2 * time.Second

// pace has the intervals of requests. A zero value means the interval that groups computes.
type pace struct {
	busy, rest, follow time.Duration
	eager              bool
	http               *http.Client // nil is the client of the configuration
}

// driver implements service.Driver for ACI.
type driver struct {
	config      Config
	client      *client
	groups      *groups
	mapping     mapping
	entrypoints *entrypoints
	monitor     *monitor
	kit         *service.Provider[instance]

	// For sessions and connections.
	tls         *tls.Config
	dial        service.Dial // nil is the network of this process
	services    corev1listers.ServiceLister
	account     string // directory with the token of the service account
	followEvery time.Duration
}

var (
	_ service.Driver[instance]    = (*driver)(nil)
	_ service.Refuser             = (*driver)(nil)
	_ service.LogReader[instance] = (*driver)(nil)
	_ service.Executor[instance]  = (*driver)(nil)
	_ service.Forwarder[instance] = (*driver)(nil)
	_ service.Measurer[instance]  = (*driver)(nil)
	_ service.Prober[instance]    = (*driver)(nil)
	_ service.Restarter[instance] = (*driver)(nil)
	_ service.NodeConfigurer      = (*driver)(nil)
	_ service.Examiner            = (*driver)(nil)
)

// newDriver returns the driver of a complete configuration, with its provider.
func newDriver(in cli.ProviderInput, config Config, at pace) (*driver, error) {
	through := at.http
	if through == nil {
		var err error
		if through, err = azlogin.HTTPClient(config.Cloud.CAFile); err != nil {
			return nil, fmt.Errorf("aci provider: %w", err)
		}
	}
	credential, err := config.Credentials.Credential(config.Cloud.Authority, through)
	if err != nil {
		return nil, fmt.Errorf("aci provider: %w", err)
	}
	c, err := newClient(config, credential, through)
	if err != nil {
		return nil, err
	}
	d := &driver{
		config: config, client: c, mapping: mapping{config: config, domain: in.KubeClusterDomain}, monitor: newMonitor(config, credential, through),
		entrypoints: newEntrypoints(registries(through)), followEvery: cmp.Or(at.follow, followEvery),
		services: in.Services, account: serviceAccount,
	}
	if t, ok := through.Transport.(*http.Transport); ok {
		d.tls = t.TLSClientConfig
	}
	owner := identity.Owner{Cluster: config.ClusterName, Node: in.Node.Name}
	d.groups = newGroups(c, owner, config.Requests.AtRest, func(pod identity.Pod) { d.kit.Cache().Forget(pod.UID) })
	d.groups.eager = at.eager
	d.kit = service.New(service.Config{
		Service: "ACI", Owner: owner, Capabilities: config.Capabilities(), Capacity: config.Capacity.resources(), Pods: in.Pods, Listed: in.Listed,
		Instead: map[service.Request]string{service.Attach: "use exec or logs"}, Again: service.AgainReplaces, Claims: true,
		Probes: probes.Make, Recorder: in.Recorder, ExecProbeEvery: config.ExecProbeEvery.Duration,
		Busy: cmp.Or(at.busy, busyEvery), Rest: cmp.Or(at.rest, listEvery),
	}, d)
	return d, nil
}

// List implements service.Driver.
func (d *driver) List(ctx context.Context) ([]instance, error) { return d.groups.list(ctx) }

// Refuse implements service.Refuser.
func (d *driver) Refuse(pod *corev1.Pod) error { return refuse(pod) }

// check refuses a pod for every reason of Create that is visible in the pod alone. Its driver makes no requests to registries.
func (d *driver) check(pod *corev1.Pod) error {
	if err := refuse(pod); err != nil {
		return err
	}
	in, err := service.Unread(identity.Owner{Cluster: d.config.ClusterName}, pod, accountName, accountKey)
	if err != nil {
		return err
	}
	r, err := d.resolve(context.Background(), in)
	if err == nil {
		_, err = d.mapping.group(r)
	}
	return err
}

// Create implements service.Driver.
func (d *driver) Create(ctx context.Context, in *service.Inputs) (instance, error) {
	r, err := d.resolve(ctx, in)
	if err != nil {
		return instance{}, service.NotMade(err)
	}
	group, err := d.mapping.group(r)
	if err != nil {
		return instance{}, err
	}
	made, err := d.client.create(ctx, in.Name, group)
	switch {
	case isMade(err):
		err = service.AlreadyMade(err)
	case azlogin.Answered(err):
		err = service.NotMade(err)
	}
	if err != nil {
		return instance{}, err
	}
	return d.groups.made(identity.Of(in.Pod), made), nil
}

// Find implements service.Driver.
func (d *driver) Find(ctx context.Context, pod *corev1.Pod) (instance, bool, error) {
	of := identity.Of(pod)
	group, err := d.client.get(ctx, d.groups.owner.Name(of))
	if errdefs.IsNotFound(err) {
		return instance{}, false, nil
	}
	if err != nil {
		return instance{}, false, err
	}
	return d.groups.made(of, group), true, nil
}

// Stop implements service.Driver. ACI has one grace period for all groups.
func (d *driver) Stop(ctx context.Context, _ *corev1.Pod, i instance) error {
	err := d.client.delete(ctx, value(i.group.Name))
	if err == nil || errdefs.IsNotFound(err) {
		d.groups.stop(value(i.group.Name))
	}
	return err
}

// Identify implements service.Driver.
func (d *driver) Identify(i instance) (poll.Identity, bool) {
	return poll.Identity{Namespace: i.pod.Namespace, Name: i.pod.Name, UID: i.pod.UID, ID: value(i.group.Name)}, i.pod.UID != ""
}

// Status implements service.Driver.
func (d *driver) Status(pod *corev1.Pod, i instance) corev1.PodStatus {
	seen := observe(i.group, i.at)
	if i.ends {
		seen.NotReady()
	}
	return podstatus.Status(pod, seen)
}

// resolve reads the values from other sources that this provider needs in addition to the common inputs.
func (d *driver) resolve(ctx context.Context, in *service.Inputs) (resolved, error) {
	r := resolved{
		Inputs: in, shares: map[string]*corev1.Secret{}, entrypoints: map[string][]string{}, seccomp: map[string]string{},
		workspaceKey: d.config.LogAnalytics.WorkspaceKey.Value(ctx),
	}
	in.Hide(r.workspaceKey)
	err := d.config.Network.reachesDNS(in.Pod, d.services)
	if n := d.config.Network; err == nil && n.Subnet != "" && n.KubeProxy.isSet() {
		r.kubeconfig, err = n.KubeProxy.kubeconfig(ctx, in, d.account)
	}
	if err != nil {
		return r, err
	}
	err = service.Containers(in.Pod, func(c *corev1.Container, _ bool, at *field.Path) (err error) {
		if r.seccomp[c.Name], err = d.config.Seccomp.profileOf(in.Pod, c, at); err != nil {
			return err
		}
		if len(c.Command) == 0 && len(c.Args) > 0 && d.entrypoints != nil {
			r.entrypoints[c.Name], err = d.entrypoints.of(ctx, c.Image, in.Logins)
		}
		if err != nil {
			return fmt.Errorf("container %s: %w", c.Name, err)
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	for i := range in.Pod.Spec.Volumes {
		v := &in.Pod.Spec.Volumes[i]
		if v.AzureFile == nil && v.CSI == nil && in.Claimed[v.Name] == nil {
			continue
		}
		share, err := r.shareOf(v, field.NewPath("spec", "volumes").Index(i))
		if err != nil {
			return r, err
		}
		secret, err := in.VolumeSecret(ctx, share.namespace, share.secret)
		if err != nil {
			return r, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		in.Hide(string(secret.Data[accountKey]))
		r.shares[v.Name] = secret
	}
	return r, nil
}

// Lacking implements service.Prober.
func (*driver) Lacking(_ *corev1.Pod, c *corev1.Container) service.Probes { return lacking(c) }

// End implements service.Prober. It stops the group, which then costs nothing.
func (d *driver) End(ctx context.Context, of service.Target[instance], _ string) error {
	name := value(of.Instance.group.Name)
	err := d.client.stop(ctx, name)
	if err == nil {
		d.groups.expect(name)
	}
	return err
}

// Restart implements service.Restarter. ACI restarts all containers of a group, so such probes are refused for a
// pod with several containers.
func (d *driver) Restart(ctx context.Context, of service.Target[instance], _ string) error {
	name := value(of.Instance.group.Name)
	err := d.client.restart(ctx, name)
	if err == nil {
		d.groups.expect(name)
	}
	return err
}
