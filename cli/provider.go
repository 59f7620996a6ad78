// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli/configfile"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

// Provider is a provider that the program can run.
type Provider struct {
	// Name is what users choose it by, with --provider. A program with
	// only one provider runs that one by default.
	Name string
	// Aliases are names that it had elsewhere, which users may go on to choose it by. The taint of the node then has the alias, as pods that
	// come from there tolerate it; everywhere else it is known by Name.
	Aliases []string
	// Readme is the provider's README in Markdown. The command providers shows what follows the colon in its title,
	// "# NAME: …", and the YAML below its heading "Configuration file" as a sample.
	Readme string
	// New makes the provider. It is called once for each node, before the node is registered;
	// ctx lives as long as the program. What it returns may have more abilities than
	// nodeutil.Provider, found by assertion; node/abilities.go is the list of them, with what happens without each:
	//   - node.PodNotifier: reports changes of pods, else they are polled;
	//   - node.PodAuthority: knows whether its answers are complete, else many pods missing at once are doubted;
	//   - node.PodObjectsUser: starts the containers of a pod one by one, with the environment of that moment;
	//   - node.PodTokensUser and node.PullCredentialsUser: gets the tokens of service accounts, and
	//     the credentials to pull images with, of its pods;
	//   - node.PodTrustBundlesUser and node.PodCertificatesUser: gets the ClusterTrustBundles that volumes of its pods select,
	//     and the certificates that they ask for;
	//   - node.PodClaimsUser: finds the PersistentVolumes that its pods claim;
	//   - node.BackgroundRunner: has work of its own to do while the node runs;
	//   - node.NodeProvider: decides whether the node is Ready, else it is;
	//   - nodeutil.VolumeProvisioner: has room for PersistentVolumes, which the node then makes for claims;
	//   - nodeutil.EndpointSlicesUser: takes services elsewhere, and gets the addresses behind them;
	//   - nodeutil.ProbeMetricsProvider: probes containers itself, and shows the outcomes;
	//   - capability.Declarer: pods that ask for more than it declares do not come to it;
	//   - NodeConfigurer: writes capacity and the like into the Node object;
	//   - Examiner: says to the command doctor why it would not work, else Ping does;
	//   - Adviser: tells the command doctor which programs it runs, and what should be done about them.
	New func(ctx context.Context, in ProviderInput) (nodeutil.Provider, error)
	// Capabilities returns what the provider will declare with the configuration file at that path, "" for
	// none, so that pods can be checked without a node. Nil: it declares nothing and gets every pod.
	Capabilities func(configPath string) (capability.Declaration, error)
	// Check returns the function that says, with the configuration file at that path, why CreatePod would refuse a pod for more than the provider
	// declares: the mapping of the provider, which answers in the words of CreatePod, and asks neither the backend nor the cluster. It does not judge
	// what ConfigMaps, Secrets and tokens of the pod contain. The command check asks it about pods that the declaration lets pass; a node does not. Nil: the
	// declaration says all that can be known without the backend.
	Check func(configPath string) (func(pod *corev1.Pod) error, error)
	// Contract changes how the command contract tests the provider, where the backend does not run the image and the commands of
	// that command. Nil: it does.
	Contract func(*providertest.Harness)
}

// NodeConfigurer is an ability of a provider: it writes into the Node object, before that is
// registered, what the backend offers.
type NodeConfigurer interface {
	// ConfigureNode changes n, which has the name, labels, taints and addresses that
	// the settings ask for.
	ConfigureNode(ctx context.Context, n *corev1.Node)
}

// Examiner is an ability of a provider whose Ping needs its work in the background, or that has more to say before the node runs.
type Examiner interface {
	// Examine returns why the provider would not work, nil if it would. The command doctor asks it instead of Ping, of a provider
	// that was made and nothing else: no ability was offered, and nothing runs in the background. Listers are empty, but for the
	// Service default/kubernetes. It changes nothing, and the error must hold nothing secret.
	Examine(ctx context.Context) error
}

// Adviser is an ability of a provider that runs programs which others keep, such as a container runtime.
type Adviser interface {
	// Advise returns the versions of these programs, and advice about those that should not be used as they are. The command doctor shows
	// both, of a provider as Examine has it. It changes nothing, and says nothing secret.
	Advise(ctx context.Context) (versions []string, advice []Advice)
}

// Advice is something wrong that keeps no pod from running, and what to do about it.
type Advice struct{ Problem, Fix string }

// ProviderInput is what a provider is made from.
type ProviderInput struct {
	// ProviderConfig holds the listers, and the Node object, which the provider may
	// change until New returns.
	nodeutil.ProviderConfig
	// ConfigPath is the provider's own configuration file; "" for none.
	ConfigPath string
	// NodeName is the name of the node.
	NodeName string
	// OperatingSystem is linux or windows.
	OperatingSystem string
	// InternalIP is the address of the node; "" if it is not set.
	InternalIP string
	// DaemonPort is the port of the kubelet API; 0 if it is not served, or if the
	// system is to choose one.
	DaemonPort int32
	// KubeClusterDomain is the domain of the cluster's DNS, such as cluster.local.
	KubeClusterDomain string
}

// newProvider returns the function that NewNode makes the provider with.
func (o *options) newProvider(ctx context.Context, p Provider) nodeutil.NewProviderFunc {
	return func(config nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		o.address(config.Node)
		made, err := p.New(ctx, ProviderInput{
			ProviderConfig:    config,
			ConfigPath:        o.ProviderConfig,
			NodeName:          config.Node.Name,
			OperatingSystem:   o.OperatingSystem,
			InternalIP:        o.NodeIP,
			DaemonPort:        o.daemonPort(),
			KubeClusterDomain: o.ClusterDomain,
		})
		if err != nil {
			return nil, nil, providerError{p.Name, err}
		}
		if c, ok := made.(NodeConfigurer); ok {
			c.ConfigureNode(ctx, config.Node)
		}
		if d, ok := made.(capability.Declarer); ok {
			annotateUnenforced(config.Node, o.accept(d.Capabilities()))
		}
		nodeProvider, _ := made.(node.NodeProvider)
		return made, nodeProvider, nil
	}
}

// providerError is an error of a provider under its name, which most say themselves, at each line.
type providerError struct {
	name string
	error
}

// Error names the provider once.
func (e providerError) Error() string {
	text := strings.ReplaceAll("\n"+e.error.Error(), "\n"+e.name+" provider: ", "\n")
	return e.name + ": " + text[1:]
}

// Unwrap returns the error of the provider.
func (e providerError) Unwrap() error { return e.error }

// choose returns the provider called name, or the only one.
func choose(providers []Provider, name string) (Provider, error) {
	known := strings.Join(providerTitles(providers), ", ")
	if name == "" && len(providers) == 1 {
		return providers[0], nil
	}
	if name == "" {
		return Provider{}, fmt.Errorf("no provider chosen: set --provider to one of: %s", known)
	}
	names := providerNames(providers)
	for _, p := range providers {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Aliases...)
	}
	for _, p := range providers { // an alias never takes the name of another one
		if slices.Contains(p.Aliases, name) {
			return p, nil
		}
	}
	hint := ""
	if near := configfile.Nearest(name, names); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return Provider{}, fmt.Errorf("no such provider %q: there are: %s%s", name, known, hint)
}

// providerNames returns the names in alphabetical order.
func providerNames(providers []Provider) []string {
	names := make([]string, 0, len(providers))
	for _, p := range providers {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// providerTitles returns the names in alphabetical order, each with its aliases.
func providerTitles(providers []Provider) []string {
	titles := make([]string, 0, len(providers))
	for _, p := range providers {
		title := p.Name
		if len(p.Aliases) > 0 {
			title += " (or " + strings.Join(p.Aliases, ", ") + ")"
		}
		titles = append(titles, title)
	}
	slices.Sort(titles)
	return titles
}
