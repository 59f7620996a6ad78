// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
)

const (
	// aliveEvery is the interval of Alive calls, and aliveWithin their timeout.
	aliveEvery, aliveWithin = 3 * time.Second, 10 * time.Second
	// firstRetry and lastRetry are the minimum and maximum pause between two attempts to connect.
	firstRetry, lastRetry = 100 * time.Millisecond, 5 * time.Second
)

//go:embed README.md
var readme string

// Provider returns the provider named plugin.
func Provider() cli.Provider {
	return cli.Provider{Name: "plugin", Readme: readme, New: func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
		config, err := LoadConfig(in.ConfigPath)
		if err != nil {
			return nil, err
		}
		return New(ctx, Node{Node: in.Node, InternalIP: in.InternalIP, DaemonPort: in.DaemonPort, OperatingSystem: in.OperatingSystem}, config)
	}}
}

// Node describes the node that uses a plugin.
type Node struct {
	// Node is the node object before the registration.
	Node *corev1.Node
	// InternalIP is the address of the node, unless the plugin reports another one; "" means none.
	InternalIP string
	// DaemonPort is the port of the kubelet API; 0 means none.
	DaemonPort int32
	// OperatingSystem is the operating system of the node, unless the plugin reports another.
	OperatingSystem string
}

// plugin has the methods that do not depend on abilities.
type plugin struct {
	config   Config
	target   target
	node     Node
	nodeName string
	nodeJSON []byte
	every    time.Duration // the interval of Alive calls
	patience time.Duration // their timeout
	retry    time.Duration // the first pause between two attempts to connect

	// Set by start, constant afterwards.
	agreed agreement
	// Set before RunInBackground, constant afterwards.
	notify      func(*corev1.Pod)
	objects     node.PodObjects
	tokens      node.PodTokens
	credentials node.PullCredentials

	known    known    // pods for a plugin that does not store specs
	complete complete // whether the plugin knows all pods, so that a missing pod does not exist

	mu         sync.Mutex
	session    *session           // guarded by mu; nil: not connected
	instance   string             // guarded by mu: the instance of the last session
	down       error              // guarded by mu: why there is no session
	since      time.Time          // guarded by mu: when the session ended
	notifyNode func(*corev1.Node) // guarded by mu; nil before NotifyNodeStatus
	latestNode *corev1.Node       // guarded by mu: the report before NotifyNodeStatus
}

// New connects to the plugin, and waits for it for at most Config.StartTimeout. The returned provider has the
// optional abilities that the plugin declares. The connection is closed at the end of RunInBackground or of ctx.
func New(ctx context.Context, n Node, config Config) (nodeutil.Provider, error) {
	p, err := newPlugin(n, config)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	return p.withAbilities(), nil
}

func newPlugin(n Node, config Config) (*plugin, error) {
	config, to, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(n.Node)
	if err != nil {
		return nil, fmt.Errorf("plugin provider: encode the node: %w", err)
	}
	return &plugin{
		config: config, target: to, node: n, nodeName: n.Node.Name, nodeJSON: encoded,
		every: aliveEvery, patience: aliveWithin, retry: firstRetry, known: known{pods: map[podKey]sentPod{}},
	}, nil
}

// Capabilities returns the features that the plugin declared, or all features if it declared none.
func (p *plugin) Capabilities() capability.Declaration { return p.agreed.declaration }

// withAbilities returns p with the optional abilities that the plugin declares.
func (p *plugin) withAbilities() nodeutil.Provider {
	reports, authority, objects := reporting{p}, authoritative{p}, reading{p}
	type pair struct{ r, a, o bool }
	switch (pair{p.agreed.hasAbility(rpc.Ability_ABILITY_REPORTS), p.agreed.hasAbility(rpc.Ability_ABILITY_AUTHORITY), p.agreed.hasAbility(rpc.Ability_ABILITY_POD_OBJECTS)}) {
	case pair{true, true, true}:
		return struct {
			*plugin
			reporting
			authoritative
			reading
		}{p, reports, authority, objects}
	case pair{true, true, false}:
		return struct {
			*plugin
			reporting
			authoritative
		}{p, reports, authority}
	case pair{true, false, true}:
		return struct {
			*plugin
			reporting
			reading
		}{p, reports, objects}
	case pair{true, false, false}:
		return struct {
			*plugin
			reporting
		}{p, reports}
	case pair{false, true, true}:
		return struct {
			*plugin
			authoritative
			reading
		}{p, authority, objects}
	case pair{false, true, false}:
		return struct {
			*plugin
			authoritative
		}{p, authority}
	case pair{false, false, true}:
		return struct {
			*plugin
			reading
		}{p, objects}
	}
	return p
}

// reporting adds the method NotifyPods.
type reporting struct{ of *plugin }

// NotifyPods sets the function that gets the plugin's pod reports.
func (r reporting) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { r.of.notify = notify }

// authoritative adds the method AnswersForAllPods.
type authoritative struct{ of *plugin }

// AnswersForAllPods returns the last value from the plugin, or false while the plugin is not connected.
func (a authoritative) AnswersForAllPods() bool { return a.of.complete.lastAnswer(time.Now()) }

// reading adds the method UsePodObjects, for plugins that start containers one by one.
type reading struct{ of *plugin }

// UsePodObjects sets the source of objects for the plugin's questions.
func (r reading) UsePodObjects(objects node.PodObjects) { r.of.objects = objects }

// UsePodTokens sets the source of tokens for the plugin's questions.
func (p *plugin) UsePodTokens(tokens node.PodTokens) { p.tokens = tokens }

// UsePullCredentials sets the source of pull credentials for the plugin's questions.
func (p *plugin) UsePullCredentials(credentials node.PullCredentials) { p.credentials = credentials }
