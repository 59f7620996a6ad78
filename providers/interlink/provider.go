// SPDX-License-Identifier: Apache-2.0

// Package interlink runs pods as jobs behind an interLink API server: on Slurm, HTCondor and other systems with
// a plugin. The package is the virtual-node half of the InterLink protocol; package plugin is the other half.
//
// The guarantees: one request returns the states of all pods. A create request whose answer was lost never starts a second job. An API
// server that does not answer, or answers with an error, never makes a pod look lost.
//
// Note: the protocol has no list. The provider asks the server only for pods of the cluster. If a pod is
// removed by force while this node is down, its job keeps running and the provider never asks for it.
package interlink

import (
	"cmp"
	"context"
	_ "embed"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/configured"
)

//go:embed README.md
var readme string

// Provider returns the provider interlink.
func Provider() cli.Provider {
	return configured.Provider(cli.Provider{Name: "interlink", Readme: readme}, configured.Steps[Config]{
		Load: LoadConfig, Complete: Config.complete, Capabilities: Config.Capabilities,
		New: func(ctx context.Context, in cli.ProviderInput, config Config) (nodeutil.Provider, error) {
			p, _, err := newProvider(in, config)
			if err != nil {
				return nil, err
			}
			for _, warning := range config.warnings {
				log.G(ctx).Warn("interlink provider: " + warning)
			}
			return service.Unlisted[instance]{Provider: p}, nil
		},
		Check: func(Config) func(*corev1.Pod) error { return check },
	})
}

// format describes the configuration file of this provider.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_INTERLINK", Unversioned: readUpstream}

// LoadConfig reads the configuration file at path; environment variables override it. If path is empty,
// LoadConfig reads the file named in CONFIGPATH, as interLink's own virtual kubelet does. Without CONFIGPATH it
// reads no file.
func LoadConfig(path string) (Config, error) {
	if path == "" {
		path = os.Getenv("CONFIGPATH")
	}
	return format.Load(path)
}

const (
	// keptFor is how long a published plugin repeats the same answer, whatever the request.
	keptFor = 10 * time.Second
	// missingFor is how long answers must lack a pod until the pod counts as lost. Requests shortly after creates and deletes show the
	// same moment, and so do the repeated answers of a plugin.
	missingFor = 3 * keptFor
	// unseenFor is how long a plugin may take to report a pod after it has accepted the pod.
	unseenFor = 2 * time.Minute
	// soon is the delay of the next status request after a create or a delete.
	soon = 250 * time.Millisecond
	// slowest is the longest pause after failures of a server. Users repair the server themselves and wait for
	// the provider to notice.
	slowest = 10 * time.Second
)

// newProvider returns the provider of a complete configuration, and its driver.
func newProvider(in cli.ProviderInput, config Config) (*service.Provider[instance], *driver, error) {
	c, err := newClient(config)
	if err != nil {
		return nil, nil, err
	}
	d := &driver{config: config, client: c, pods: in.Pods, wanted: map[types.UID]bool{}, asker: asker{client: c}}
	every := config.StatusInterval.Duration
	p := service.New(service.Config{
		Service: "InterLink", Owner: identity.Owner{Node: in.NodeName}, Capabilities: config.Capabilities(),
		Pods: in.Pods, Listed: in.Listed, LogsUnseen: true, NoLogins: true,
		Instead: map[service.Request]string{
			service.Exec:        "read what the job writes with kubectl logs",
			service.Attach:      "follow its output with kubectl logs -f",
			service.PortForward: "reach the job in the network of its site",
		},
		Again: service.AgainMakesAnother, Unlisted: true, SeenWithin: unseenFor, EarlierWithin: cmp.Or(config.earlier, keptFor), LostFor: missingFor,
		Busy: every, Rest: every, Idle: every, Soon: min(soon, every), Slowest: slowest, // without pods there are no requests
		Objects: func(o node.PodObjects) node.PodObjects { return withCA{o, config.KubernetesAPI.CA} },
		Skips:   func(v *corev1.Volume) bool { return v.Projected != nil && config.NoProjectedVolumes },
	}, d)
	d.known, d.offer = p.Cache().Known, p.Offer
	return p, d, nil
}
