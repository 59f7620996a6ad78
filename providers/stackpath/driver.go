// SPDX-License-Identifier: Apache-2.0

// Package stackpath is a provider that runs pods in StackPath Edge Compute, or at an endpoint with the same API. The service itself closed in 2024.
//
// The guarantee: a pod is one workload, and the slug of the workload is the hash of the pod. A pod with a setting that a workload cannot have is
// refused, with the name of the field. The client secret goes only to hosts that the configuration names, and only to a console with the configured
// host key.
//
// Note: lists show which workloads exist, but not whether they run. Each instance needs its own request, so a budget limits these requests.
package stackpath

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	kitconfig "github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/configured"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/lookups"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sshexec"
)

//go:embed README.md
var readme string

// Provider returns the provider stackpath.
func Provider() cli.Provider {
	return configured.Provider(cli.Provider{Name: "stackpath", Readme: readme}, configured.Steps[Config]{
		Load: LoadConfig, Complete: Config.complete, Capabilities: Config.Capabilities,
		New: func(_ context.Context, in cli.ProviderInput, config Config) (nodeutil.Provider, error) {
			next, err := kitconfig.Transport(config.CAFile)
			if err != nil {
				return nil, err
			}
			return newDriver(in, config, next).kit, nil
		},
		Check: func(config Config) func(*corev1.Pod) error { return mapping{config: config}.checkPod },
	})
}

// driver implements service.Driver for StackPath.
type driver struct {
	mapping
	client    *client
	workloads string // the path of the stack's workloads
	instances *lookups.Lookups[*instance]
	kit       *service.Provider[seen]
}

// lookAfterCreate is the time from a create to the first lookup of the instance. lookAfter is the time from a stop to the first lookup, and between
// two lookups. A container takes seconds to start or stop, and earlier lookups show no change.
const lookAfterCreate, lookAfter = 6 * time.Second, 3 * time.Second

// newDriver returns the driver of a complete configuration. Requests go through next.
func newDriver(in cli.ProviderInput, config Config, next http.RoundTripper) *driver {
	owner := identity.Owner{Cluster: config.ClusterName, Node: in.NodeName}
	d := &driver{mapping: mapping{config, owner}, client: newClient(config, next), workloads: "/workload/v1/stacks/" + url.PathEscape(config.StackID) + "/workloads"}
	d.instances = lookups.New(config.InstanceRequests, cmp.Or(config.busy, lookAfterCreate), cmp.Or(config.busy, lookAfter), d.readInstance)
	d.kit = service.New(service.Config{
		Service: "StackPath", Owner: owner, Capabilities: config.Capabilities(), Capacity: config.Capacity, Pods: in.Pods, Listed: in.Listed,
		Again: service.AgainReplaces, SeenWithin: config.seenWithin, Busy: config.busy, Soon: cmp.Or(config.busy, lookAfter/2), Rest: config.rest, Idle: config.idle,
		Instead: map[service.Request]string{service.Attach: "use exec or logs", service.PortForward: "connect to the address of the pod"},
	}, d)
	return d
}

// workloadPath returns the path of a workload.
func (d *driver) workloadPath(id string) string { return d.workloads + "/" + url.PathEscape(id) }

// readInstance reads the instance of a workload. If there are several, the newest instance is the pod.
func (d *driver) readInstance(ctx context.Context, id string) (newest *instance, settled bool, err error) {
	err = eachItem(ctx, d.client, d.workloadPath(id)+"/instances", func(i instance) {
		if newest == nil || newest.Phase == "DELETING" || i.Phase != "DELETING" && newest.CreatedAt < i.CreatedAt {
			newest = &i
		}
	})
	return newest, newest.isSettled(), err
}

// List implements service.Driver. It returns all workloads with their instances, and refreshes some of the instances.
func (d *driver) List(ctx context.Context) (all []seen, err error) {
	listed := map[string]lookups.Listed{}
	err = eachItem(ctx, d.client, d.workloads, func(w workload) {
		if s, ours := d.ownedWorkload(w); ours {
			all = append(all, s)
			s.instance = d.instances.Last(w.ID)
			if deleted := w.Metadata.DeleteRequestedAt != ""; !s.hasEnded() { // after the end, the instance does not change any more
				listed[w.ID] = lookups.Listed{Changes: deleted, Optional: deleted} // lists also show the end of a deleted workload
			}
		}
	})
	if err == nil {
		err = d.instances.Refresh(ctx, listed)
	}
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].instance = d.instances.Last(all[i].ID)
	}
	return slices.DeleteFunc(all, seen.isGone), nil
}

// ownedWorkload returns a workload of this node, or false if the workload belongs to another node.
func (d *driver) ownedWorkload(w workload) (seen, bool) {
	pod, ours := d.owner.Owned(w.Metadata.Labels)
	w.Metadata.Labels = nil // pod has their values, and the map is no longer needed
	return seen{workload: w, pod: pod}, ours
}

// Identify implements service.Driver.
func (d *driver) Identify(s seen) (poll.Identity, bool) {
	return poll.Identity{Namespace: s.pod.Namespace, Name: s.pod.Name, UID: s.pod.UID, ID: s.ID, CreatedAt: podstatus.ParseTime(s.Metadata.CreatedAt)}, s.pod.UID != ""
}

// Ended implements service.Ender. Lists still show a deleted workload after all its containers have ended.
func (d *driver) Ended(s seen) bool { return s.hasEnded() }

// Status implements service.Driver.
func (d *driver) Status(pod *corev1.Pod, s seen) corev1.PodStatus {
	return podstatus.Status(pod, observePod(pod, s))
}

// Create implements service.Driver.
func (d *driver) Create(ctx context.Context, in *service.Inputs) (made seen, err error) {
	body, err := d.workloadRequest(in)
	if err != nil {
		return made, service.NotMade(err)
	}
	var answer struct{ Workload workload }
	err = d.client.call(ctx, http.MethodPost, d.workloads, body, &answer)
	var said *apiError
	switch {
	case errors.As(err, &said) && said.Code == codeExists:
		return made, service.AlreadyMade(err)
	case said != nil && said.status < 500 && said.Code != 0:
		return made, service.NotMade(err)
	case err == nil && answer.Workload.ID == "":
		err = errors.New("the service gives no ID of the workload: it is looked for")
	}
	answer.Workload.Metadata.Labels = in.Tags
	made, _ = d.ownedWorkload(answer.Workload)
	d.instances.Made(made.ID)
	return made, err
}

// Find implements service.Driver, by the slug. It ignores workloads that are being deleted.
func (d *driver) Find(ctx context.Context, pod *corev1.Pod) (found seen, is bool, err error) {
	var answer struct{ Workload workload }
	err = d.client.call(ctx, http.MethodGet, d.workloadPath(d.owner.Name(identity.Of(pod))), nil, &answer)
	if errdefs.IsNotFound(err) {
		return found, false, nil
	}
	found, ours := d.ownedWorkload(answer.Workload)
	if err != nil || !ours || found.pod.UID != pod.UID || pod.DeletionTimestamp == nil && found.Metadata.DeleteRequestedAt != "" {
		return found, false, err
	}
	found.instance, err = d.instances.Ask(ctx, found.ID) // without the instance, a running pod would start again
	return found, err == nil, err
}

// Close implements service.Closer.
func (d *driver) Close() { d.client.close() }

// Stop implements service.Driver. A workload has the grace period from its creation.
func (d *driver) Stop(ctx context.Context, _ *corev1.Pod, s seen) error {
	return d.client.call(ctx, http.MethodDelete, d.workloadPath(s.ID), nil, nil)
}

// mostLog is the maximum number of bytes of a log in one read. logEvery is the interval of reads of a followed log.
const mostLog, logEvery = maxAnswer / 2, 2 * time.Second

// Logs implements service.LogReader. It reads a followed log again from its last line, because the service cuts
// its own stream after a minute without a line.
func (d *driver) Logs(ctx context.Context, of service.Target[seen], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	if of.Instance.instance == nil {
		return nil, errdefs.NotFound("its workload has no instance")
	}
	query := url.Values{"container_name": {of.Container}, "timestamps": {"true"}, "limit_bytes": {strconv.Itoa(mostLog)}, "previous": {strconv.FormatBool(opts.Previous)}}
	if opts.Tail > 0 {
		query.Set("tail_lines", strconv.Itoa(opts.Tail))
	}
	return d.kit.RereadLog(ctx, of, opts, logEvery, func(ctx context.Context, since time.Time) ([]logs.Line, error) {
		if !since.IsZero() {
			query.Set("since_time", since.UTC().Format(time.RFC3339Nano))
		}
		var text strings.Builder
		err := d.client.askService(ctx, http.MethodGet, d.workloadPath(of.Instance.ID)+"/instances/"+url.PathEscape(of.Instance.instance.Name)+"/logs?"+query.Encode(), nil, func(log io.Reader) error {
			_, err := io.Copy(&text, log)
			return err
		})
		query.Del("tail_lines") // later reads get all new lines
		return logs.Stamped(text.String()), err
	})
}

// Exec implements service.Executor through the console. The client secret is the password there.
func (d *driver) Exec(ctx context.Context, in service.Target[seen], command []string, attach api.AttachIO) error {
	if !d.config.Console.IsSet() {
		return errdefs.InvalidInput("this node has no console for it: set console.address and console.hostKey in its configuration")
	}
	user := d.config.StackID + "." + in.Instance.instance.Name + "." + in.Container + "." + d.config.ClientID
	client, err := d.config.Console.Dial(ctx, user, ssh.Password(d.config.ClientSecret.Value(ctx)))
	if err != nil {
		return err
	}
	defer client.Close()
	return sshexec.Run(ctx, client, command, attach)
}

// Examine implements service.Examiner. It lists workloads, checks that the city exists, and checks the key of the console without a password.
func (d *driver) Examine(ctx context.Context) error {
	if err := d.client.call(ctx, http.MethodGet, d.workloads+"?page_request.first=1", nil, nil); err != nil {
		return err
	}
	var cities []string
	err := eachItem(ctx, d.client, "/workload/v1/locations", func(l struct{ CityCode string }) { cities = append(cities, l.CityCode) })
	if err == nil && !slices.Contains(cities, d.config.CityCode) {
		err = fmt.Errorf("cityCode: %s is none of the locations %q", d.config.CityCode, cities)
	}
	if !d.config.Console.IsSet() {
		return err
	}
	client, failed := d.config.Console.Dial(ctx, "doctor")
	if failed == nil {
		client.Close()
	} else if errors.Is(failed, sshexec.ErrRefused) { // the console received nothing
		failed = nil
	}
	return errors.Join(err, failed)
}
