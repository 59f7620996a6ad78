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
	// Name is the name by which users choose the provider, with --provider. A program with only one provider
	// runs it by default.
	Name string
	// Aliases are earlier names of the provider in other projects, which users may still use to choose it. The taint of the node then has
	// the alias, because pods written for those projects tolerate it. Everything else uses Name.
	Aliases []string
	// Readme is the provider's README in Markdown. The command providers shows the text after the colon in its
	// title, "# NAME: …", and the YAML below its heading "Configuration file" as a sample.
	Readme string
	// New makes the provider. It is called once for each node, before the node is registered; ctx lives as long as the program. The
	// result may implement optional interfaces, which the node finds by type assertion. node/abilities.go has the behavior without each of
	// them:
	//   - node.PodNotifier: reports changes of pods; without it, the pods are polled;
	//   - node.PodAuthority: knows whether its answers are complete; without it, the node doubts an answer that lacks many pods at once;
	//   - node.PodObjectsUser: starts the containers of a pod one by one, each with the environment of that moment;
	//   - node.PodTokensUser and node.PullCredentialsUser: receives the service account tokens and the image pull credentials of its pods;
	//   - node.PodTrustBundlesUser and node.PodCertificatesUser: receives the ClusterTrustBundles that volumes of its pods select, and the
	//     certificates that they request;
	//   - node.PodClaimsUser: finds the PersistentVolumes that its pods claim;
	//   - node.BackgroundRunner: has background work while the node runs;
	//   - node.NodeProvider: decides whether the node is Ready; without it, the node is always Ready;
	//   - nodeutil.VolumeProvisioner: provides storage for the PersistentVolumes that the node creates for claims;
	//   - nodeutil.EndpointSlicesUser: exports services, and receives their endpoint addresses;
	//   - nodeutil.ProbeMetricsProvider: probes containers itself, and reports the results;
	//   - capability.Declarer: declares the supported pod features; the node refuses pods that need other features;
	//   - NodeConfigurer: writes the capacity and other fields of the Node object;
	//   - Examiner: tells the command doctor why the provider would not work; without it, doctor calls Ping;
	//   - Adviser: tells the command doctor which programs the provider runs, and gives advice about them.
	New func(ctx context.Context, in ProviderInput) (nodeutil.Provider, error)
	// Capabilities returns the provider's declaration for the configuration file at configPath ("" for none), so that pods can be checked
	// without a node. Nil: the provider declares nothing and receives every pod.
	Capabilities func(configPath string) (capability.Declaration, error)
	// Check returns a function for the configuration file at configPath. The function returns the error that CreatePod would return for a
	// pod, beyond the features in the declaration. It uses the same mapping and the same messages as CreatePod, without requests to the
	// backend or the cluster. It does not judge the contents of the ConfigMaps, Secrets and tokens of the pod. Only the command check calls
	// it, for pods that the declaration allows. Nil: only the declaration is checked.
	Check func(configPath string) (func(pod *corev1.Pod) error, error)
	// Contract changes how the command contract tests the provider, if the backend does not run the image and the commands of that command.
	// Nil: the backend runs them.
	Contract func(*providertest.Harness)
}

// NodeConfigurer is an optional ability of a provider: it writes the capacity of the backend into the Node object before the node is
// registered.
type NodeConfigurer interface {
	// ConfigureNode changes n, which already has the name, labels, taints and addresses of the settings.
	ConfigureNode(ctx context.Context, n *corev1.Node)
}

// Examiner is an optional ability of a provider that checks more than Ping before the node runs, or whose Ping needs background work.
type Examiner interface {
	// Examine returns why the provider would not work, or nil. The command doctor calls it instead of Ping. The provider was created but
	// not started: no optional ability was used, and nothing runs in the background. Listers are empty, except for the Service
	// default/kubernetes. Examine changes nothing, and its error must contain no secret.
	Examine(ctx context.Context) error
}

// Adviser is an optional ability of a provider that runs programs maintained by others, such as a container
// runtime.
type Adviser interface {
	// Advise returns the versions of these programs, and advice about programs that should not be used as they
	// are. The command doctor shows both, for a provider in the same state as for Examine. It changes nothing,
	// and reveals no secret.
	Advise(ctx context.Context) (versions []string, advice []Advice)
}

// Advice is a problem that does not keep pods from running, and its fix.
type Advice struct{ Problem, Fix string }

// ProviderInput has the inputs for a new provider.
type ProviderInput struct {
	// ProviderConfig holds the listers, and the Node object, which the provider may change until New returns.
	nodeutil.ProviderConfig
	// ConfigPath is the provider's own configuration file; "" for none.
	ConfigPath string
	// NodeName is the name of the node.
	NodeName string
	// OperatingSystem is linux or windows.
	OperatingSystem string
	// InternalIP is the address of the node; "" if it is not set.
	InternalIP string
	// DaemonPort is the port of the kubelet API. It is 0 if the API is not served, or if the system chooses the
	// port.
	DaemonPort int32
	// KubeClusterDomain is the domain of the cluster's DNS, such as cluster.local.
	KubeClusterDomain string
}

// newProvider returns the function that creates the provider for NewNode.
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

// providerError is an error of a provider with the name of the provider. Most providers already begin each line of the error with their
// name.
type providerError struct {
	name string
	error
}

// Error returns the error text with the name of the provider once.
func (e providerError) Error() string {
	text := strings.ReplaceAll("\n"+e.error.Error(), "\n"+e.name+" provider: ", "\n")
	return e.name + ": " + text[1:]
}

// Unwrap returns the error of the provider.
func (e providerError) Unwrap() error { return e.error }

// choose returns the provider called name, or the only provider.
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
	for _, p := range providers { // an alias never overrides the name of another provider
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
