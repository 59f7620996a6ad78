// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"cmp"
	"context"
	_ "embed"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

//go:embed README.md
var readme string

// Provider returns the provider interlink.
func Provider() cli.Provider {
	return cli.Provider{
		Name:   "interlink",
		Readme: readme,
		New: func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			p, d, err := newProvider(in, config)
			if err != nil {
				return nil, err
			}
			for _, warning := range d.config.warnings {
				log.G(ctx).Warn("interlink provider: " + warning)
			}
			return service.Unlisted[instance]{Provider: p}, nil
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
		Check: func(path string) (func(*corev1.Pod) error, error) {
			_, err := LoadConfig(path)
			return check, err
		},
	}
}

// format is what a configuration file of this provider looks like.
var format = config.Format[Config]{APIVersion: APIVersion, Kind: Kind, Env: "VKUBELET_INTERLINK", Unversioned: readUpstream}

// LoadConfig returns what the file at path says, and the environment above it. An empty path is the one in CONFIGPATH, as interLink's own
// virtual kubelet has it, or no file.
func LoadConfig(path string) (Config, error) {
	if path == "" {
		path = os.Getenv("CONFIGPATH")
	}
	return format.Load(path)
}

const (
	// keptFor is how long a published plugin gives the same answer again, whatever it is asked.
	keptFor = 10 * time.Second
	// missingFor is how long answers must lack a pod until it is lost: answers that creates and deletes hurry are of one moment, and so are those that
	// a plugin keeps.
	missingFor = 3 * keptFor
	// unseenFor is how long a plugin may take to tell of a pod that it has accepted.
	unseenFor = 2 * time.Minute
	// soon is how long after a create or a delete the next answer is asked for.
	soon = 250 * time.Millisecond
	// slowest is how long a server that fails is left alone at most: users mend it themselves, and wait for that.
	slowest = 10 * time.Second
)

// newProvider returns the provider of a configuration, and its driver.
func newProvider(in cli.ProviderInput, config Config) (*service.Provider[instance], *driver, error) {
	config, err := config.complete()
	if err != nil {
		return nil, nil, err
	}
	c, err := newClient(config)
	if err != nil {
		return nil, nil, err
	}
	d := &driver{config: config, client: c, pods: in.Pods, wanted: map[types.UID]bool{}, asker: asker{client: c}}
	every := time.Duration(config.StatusInterval)
	p := service.New(service.Config{
		Service: "InterLink", Owner: identity.Owner{Node: in.NodeName}, Capabilities: config.Capabilities(),
		Pods: in.Pods, Listed: in.Listed, LogsUnseen: true, NoLogins: true,
		Instead: map[service.Request]string{
			service.Exec:        "read what the job writes with kubectl logs",
			service.Attach:      "follow its output with kubectl logs -f",
			service.PortForward: "reach the job in the network of its site",
		},
		Again: service.AgainMakesAnother, Unlisted: true, SeenWithin: unseenFor, EarlierWithin: cmp.Or(config.earlier, keptFor), LostFor: missingFor,
		Busy: every, Rest: every, Idle: every, Soon: min(soon, every), Slowest: slowest, // without a pod nothing is asked
		Objects: func(o node.PodObjects) node.PodObjects { return withCA{o, config.KubernetesAPI.CA} },
		Skips:   func(v *corev1.Volume) bool { return v.Projected != nil && config.NoProjectedVolumes },
	}, d)
	d.known = p.Cache().Known
	return p, d, nil
}
