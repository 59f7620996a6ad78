// SPDX-License-Identifier: Apache-2.0

// Package nova starts machines at OpenStack's Nova, of Pike (2017) or later.
//
// The guarantee: a server has its metadata and its tag from the call that makes it. If the answer to a create was lost, the driver does not create the
// machine of that token again until lists must show it.
//
// Note: Nova has no client token. The name of a server is its token, and Start looks for the name before it creates a server. A server that powers
// itself off still costs money, so the driver reports it as Gone, and the provider deletes it.
package nova

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	gophercloudopenstack "github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/openstack"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// Config configures a Driver.
type Config struct {
	// Cloud is the name of a cloud in clouds.yaml, with the credentials. Default: the variable OS_CLOUD.
	Cloud string `json:"cloud,omitempty"`
	// Region is the region of machines. Default: the region of the cloud.
	Region string `json:"region,omitempty"`
	// NetworkID is the Neutron network of machines. Required.
	NetworkID string `json:"networkID,omitempty"`
	// SecurityGroups are the groups of all machines, by name or ID. They must let the node reach the port of the agent. Default: the project's default.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// AvailabilityZone is the zone of machines. Default: Nova chooses.
	AvailabilityZone string `json:"availabilityZone,omitempty"`
	// ConfigDrive gives machines a disk with their user data, for images with cloud-init. Images of cell-image read the metadata service.
	ConfigDrive bool `json:"configDrive,omitempty"`
}

// Driver starts machines at Nova.
type Driver struct {
	config Config
	port   int
	client openstack.Client

	mu      sync.Mutex
	flavors map[string]string    // guarded by mu; IDs by name
	asked   map[string]time.Time // guarded by mu; running and unanswered creates, by token

	look time.Duration // between two checks whether a server has a host
}

var _ machine.Driver = (*Driver)(nil)

const (
	// microversion is the first API microversion that accepts tags in the call that creates a server.
	microversion = "2.52"
	// patience is the time limit of a request.
	patience = 30 * time.Second
	// scheduledWithin is the time for which Start waits for Nova to find a host.
	scheduledWithin = 20 * time.Second
	// lostFor is the time within which lists show a server whose create response was lost. Afterwards, the server does not exist.
	lostFor = 2 * time.Minute
	// maxUserData is the maximum length of user data in Base64, and maxValue of a value of metadata.
	maxUserData, maxValue = 65535, 255
)

// New returns a driver for a configuration. Agents listen on port. The driver logs in at its first request.
func New(c Config, port int) (*Driver, error) {
	login, err := c.login(context.Background())
	if err != nil {
		return nil, err
	}
	transport, err := config.Transport("")
	if err != nil {
		return nil, err
	}
	if login.TLS != nil {
		transport.TLSClientConfig = login.TLS
	}
	return &Driver{
		config: c, port: port, flavors: map[string]string{}, asked: map[string]time.Time{}, look: time.Second,
		client: openstack.Client{
			Name: "Nova", Type: "compute", Microversion: microversion, Login: c.login, Find: gophercloudopenstack.NewComputeV2,
			HTTP: http.Client{Transport: transport, CheckRedirect: openstack.NoRedirect},
		},
	}, nil
}

// login returns the credentials.
func (c Config) login(context.Context) (openstack.Login, error) {
	l, err := openstack.Cloud{Name: c.Cloud, Region: c.Region}.Login()
	if err != nil {
		err = fmt.Errorf("find the credentials for Nova: %w: name a cloud of clouds.yaml in nova.cloud or OS_CLOUD", err)
	}
	return l, err
}

// call makes a request and reads the answer. False means that the request was not sent.
func (d *Driver) call(ctx context.Context, method, path string, query url.Values, in, out any) (sent bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err = d.client.Call(ctx, method, path, query, in, out)
	return !openstack.NotSent(err), kind(err)
}

// server is a server in an answer of Nova.
type server struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
	Task     string            `json:"OS-EXT-STS:task_state"`
	Created  time.Time         `json:"created"`
	Metadata map[string]string `json:"metadata"`
	Flavor   struct {
		Name string `json:"original_name"`
	} `json:"flavor"`
	Addresses map[string][]struct {
		Address string `json:"addr"`
		Version int    `json:"version"`
		Kind    string `json:"OS-EXT-IPS:type"`
	} `json:"addresses"`
	Fault struct {
		Message string `json:"message"`
	} `json:"fault"`
}

// group returns the tag of all servers of a node: Nova filters lists by tags, but not by metadata. A tag has at most 60 characters, and neither / nor a comma.
func group(tags map[string]string) string {
	return "vk-" + identity.Hash(tags[identity.TagCluster], tags[identity.TagNode])
}

// Start implements machine.Driver.
func (d *Driver) Start(ctx context.Context, s machine.Spec) (machine.Machine, error) {
	data := base64.StdEncoding.EncodeToString(s.UserData)
	switch {
	case len(data) > maxUserData:
		return machine.Machine{}, errdefs.InvalidInputf("the user data have %d characters in Base64, and Nova takes %d", len(data), maxUserData)
	case s.Spot || s.InstanceProfile != "":
		return machine.Machine{}, errdefs.InvalidInput("Nova has neither spot machines nor instance profiles")
	}
	claimed := d.claim(s.Token)
	made, err := d.list(ctx, url.Values{"name": {"^" + regexp.QuoteMeta(s.Token) + "$"}})
	n := slices.IndexFunc(made, func(m server) bool { return m.Name == s.Token })
	switch {
	case err == nil && n >= 0:
		d.release(s.Token)
		return d.scheduled(ctx, made[n])
	case !claimed:
		return machine.Machine{}, errors.Join(fmt.Errorf("nova has not answered the request for server %s, and may still make it: it is requested again after %s", s.Token, lostFor), err)
	case err != nil:
		d.release(s.Token)
		return machine.Machine{}, err
	}
	flavor, err := d.flavorID(ctx, s.Type.Name)
	if err != nil {
		d.release(s.Token)
		return machine.Machine{}, err
	}
	var answer struct{ Server server }
	sent, err := d.call(ctx, http.MethodPost, "servers", nil, map[string]any{"server": d.request(s, flavor, data)}, &answer)
	if err == nil || !sent || machine.RefusalOf(err) != 0 {
		d.release(s.Token)
	}
	if err != nil {
		return machine.Machine{}, err
	}
	begun := server{ID: answer.Server.ID, Status: "BUILD", Metadata: cut(s.Tags), Created: time.Now()}
	begun.Flavor.Name = s.Type.Name
	return d.scheduled(ctx, begun)
}

// claim permits the create of a server. It returns false while a create of the token runs, or has recently gone unanswered, because another create
// could make a second server.
func (d *Driver) claim(token string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, is := d.asked[token]; is && time.Since(at) < lostFor {
		return false
	}
	d.asked[token] = time.Now()
	return true
}

// release ends a claim after Nova has answered.
func (d *Driver) release(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.asked, token)
}

// request returns the request for a server.
func (d *Driver) request(s machine.Spec, flavor, data string) map[string]any {
	in := map[string]any{
		"name": s.Token, "flavorRef": flavor, "imageRef": s.Image, "user_data": data, "metadata": cut(s.Tags), "tags": []string{group(s.Tags)},
		"networks": []map[string]string{{"uuid": d.config.NetworkID}},
	}
	if d.config.ConfigDrive {
		in["config_drive"] = true
	}
	if d.config.AvailabilityZone != "" {
		in["availability_zone"] = d.config.AvailabilityZone
	}
	var groups []map[string]string
	for _, name := range slices.Concat(d.config.SecurityGroups, s.SecurityGroups) {
		groups = append(groups, map[string]string{"name": name})
	}
	if groups != nil {
		in["security_groups"] = groups
	}
	if s.VolumeGiB > 0 {
		in["imageRef"] = ""
		in["block_device_mapping_v2"] = []map[string]any{{
			"boot_index": 0, "uuid": s.Image, "source_type": "image", "destination_type": "volume", "volume_size": s.VolumeGiB, "delete_on_termination": true,
		}}
	}
	return in
}

// cut returns tags as metadata of a server, with values of at most maxValue characters.
func cut(tags map[string]string) map[string]string {
	all := maps.Clone(tags)
	for k, v := range all {
		if runes := []rune(v); len(runes) > maxValue {
			all[k] = string(runes[:maxValue])
		}
	}
	return all
}

// flavor is a size of servers.
type flavor struct{ ID, Name string }

// flavorID returns the ID of a flavor.
func (d *Driver) flavorID(ctx context.Context, name string) (string, error) {
	d.mu.Lock()
	id := d.flavors[name]
	d.mu.Unlock()
	if id != "" {
		return id, nil
	}
	all, err := listAll(ctx, d, "flavors", "flavors", url.Values{}, func(f flavor) string { return f.ID })
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.flavors)
	for _, f := range all {
		d.flavors[f.Name] = f.ID
	}
	if id = d.flavors[name]; id == "" {
		return "", machine.Refuse(machine.Denied, fmt.Errorf("the project has no flavor %s: correct types in the provider's configuration", name))
	}
	return id, nil
}

// scheduled waits until Nova has found a host for a server, or could not. Without a host, it deletes the server, and returns a refusal.
func (d *Driver) scheduled(ctx context.Context, s server) (machine.Machine, error) {
	ctx, cancel := context.WithTimeout(ctx, scheduledWithin)
	defer cancel()
	for first := true; ; first = false {
		switch {
		case s.Task == "deleting":
			return machine.Machine{}, machine.Refuse(machine.Throttled, fmt.Errorf("nova still deletes server %s", s.ID))
		case s.Status == "ERROR" && strings.Contains(s.Fault.Message, "No valid host"):
			if err := d.Stop(ctx, s.ID); err != nil && !errdefs.IsNotFound(err) {
				return machine.Machine{}, fmt.Errorf("delete server %s, for which Nova has found no host: %w", s.ID, err)
			}
			return machine.Machine{}, machine.Refuse(machine.NoCapacity, errors.New(s.Fault.Message))
		case s.Status != "BUILD" || s.Task != "scheduling" && !first:
			return d.machineOf(s), nil
		}
		if !first {
			select {
			case <-ctx.Done():
				return d.machineOf(s), nil // lists show the rest
			case <-time.After(d.look):
			}
		}
		now, err := d.get(ctx, s.ID)
		if errdefs.IsNotFound(err) {
			return machine.Machine{}, machine.Refuse(machine.Throttled, fmt.Errorf("server %s has been deleted", s.ID))
		}
		if err == nil {
			s = now
		} else if ctx.Err() == nil && first {
			return d.machineOf(s), nil //nolint:nilerr // the server exists, and lists show the rest
		}
	}
}

func (d *Driver) get(ctx context.Context, id string) (server, error) {
	var answer struct{ Server server }
	_, err := d.call(ctx, http.MethodGet, "servers/"+url.PathEscape(id), nil, nil, &answer)
	return answer.Server, err
}

// Stop implements machine.Driver.
func (d *Driver) Stop(ctx context.Context, id string) error {
	_, err := d.call(ctx, http.MethodDelete, "servers/"+url.PathEscape(id), nil, nil, nil)
	return err
}

// List implements machine.Driver.
func (d *Driver) List(ctx context.Context, tags map[string]string) ([]machine.Machine, error) {
	servers, err := d.list(ctx, url.Values{"tags": {group(tags)}})
	if err != nil {
		return nil, err
	}
	var all []machine.Machine
	for _, s := range servers {
		has := true
		for k, v := range cut(tags) {
			got, is := s.Metadata[k]
			has = has && is && got == v
		}
		if has {
			all = append(all, d.machineOf(s))
		}
	}
	return all, nil
}

func (d *Driver) list(ctx context.Context, query url.Values) ([]server, error) {
	return listAll(ctx, d, "servers/detail", "servers", query, func(s server) string { return s.ID })
}

// listAll returns the objects on all pages of a collection.
func listAll[T any](ctx context.Context, d *Driver, path, collection string, query url.Values, idOf func(T) string) (all []T, err error) {
	err = openstack.EachItem(collection, query, func(query url.Values, read func(io.Reader) error) error {
		_, err := d.call(ctx, http.MethodGet, path, query, nil, read)
		return err
	}, idOf, func(item T) { all = append(all, item) })
	return all, err
}

// Describe implements machine.Driver.
func (d *Driver) Describe(ctx context.Context, id string) (machine.Machine, bool, error) {
	s, err := d.get(ctx, id)
	if errdefs.IsNotFound(err) {
		return machine.Machine{}, false, nil
	}
	return d.machineOf(s), err == nil, err
}

// Tag implements machine.Driver.
func (d *Driver) Tag(ctx context.Context, id string, tags map[string]string) error {
	_, err := d.call(ctx, http.MethodPost, "servers/"+url.PathEscape(id)+"/metadata", nil, map[string]any{"metadata": cut(tags)}, nil)
	return err
}

// consoleLines is the number of lines at the end of the console that Console returns.
const consoleLines = 1000

// Console implements machine.Driver.
func (d *Driver) Console(ctx context.Context, id string) (string, error) {
	var answer struct{ Output string }
	in := map[string]any{"os-getConsoleOutput": map[string]any{"length": consoleLines}}
	_, err := d.call(ctx, http.MethodPost, "servers/"+url.PathEscape(id)+"/action", nil, in, &answer)
	return answer.Output, err
}

// states maps the states of servers. Other states, such as PAUSED or REBOOT, are Unknown: another client has changed the server.
var states = map[string]machine.State{
	"BUILD": machine.Starting, "ACTIVE": machine.Running, "DELETED": machine.Gone, "SOFT_DELETED": machine.Gone,
	"SHUTOFF": machine.Gone, "ERROR": machine.Gone, // the pod has ended, and the provider deletes the remains
}

// machineOf converts a server.
func (d *Driver) machineOf(s server) machine.Machine {
	m := machine.Machine{ID: s.ID, Type: s.Flavor.Name, Tags: s.Metadata, State: states[s.Status], Created: s.Created}
	if m.Tags == nil {
		m.Tags = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Addresses)) {
		for _, a := range s.Addresses[name] {
			if m.IP == "" && a.Version == 4 && a.Kind != "floating" {
				m.IP, m.Address = a.Address, net.JoinHostPort(a.Address, strconv.Itoa(d.port))
			}
		}
	}
	switch {
	case s.Task == "deleting" && m.State != machine.Gone:
		m.State = machine.Stopping
	case m.State == machine.Gone:
		m.Reason, m.Message = s.Status, s.Fault.Message
	}
	return m
}

// advice is the remedy for a refusal.
var advice = map[machine.Refusal]string{
	machine.Denied: "look at the credentials and the policy of the project, and at the provider's configuration",
	machine.Quota:  "raise the quota of the project",
}

// kind gives a refusal of Nova its kind. An error without a kind does not show whether Nova has executed the request.
func kind(err error) error {
	var answer *openstack.Refusal
	if !errors.As(err, &answer) {
		return err
	}
	said := fmt.Errorf("nova answers %w", err)
	why := machine.Denied
	switch {
	case answer.Status >= http.StatusInternalServerError || answer.Status < http.StatusBadRequest:
		return said
	case answer.Status == http.StatusNotFound:
		return errdefs.AsNotFound(said)
	case answer.Status == http.StatusTooManyRequests:
		if answer.After > 0 {
			said = errdefs.RetryAfter(said, answer.After)
		}
		return machine.Refuse(machine.Throttled, said)
	case answer.Status == http.StatusConflict:
		return machine.Refuse(machine.Throttled, said) // the server is busy with another request
	case answer.Status == http.StatusForbidden && strings.Contains(strings.ToLower(answer.Detail), "quota exceeded"), answer.Status == http.StatusRequestEntityTooLarge:
		why = machine.Quota
	}
	return machine.Refuse(why, fmt.Errorf("%w: %s", said, advice[why]))
}
