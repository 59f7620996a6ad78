// SPDX-License-Identifier: Apache-2.0

package providerrpc

import (
	"context"
	"encoding/json"
	"io"
	"slices"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// The optional methods of a provider, one interface each.
type (
	logsProvider interface {
		GetContainerLogs(ctx context.Context, namespace, podName, containerName string, opts api.ContainerLogOpts) (io.ReadCloser, error)
	}
	execProvider interface {
		RunInContainer(ctx context.Context, namespace, podName, containerName string, cmd []string, attach api.AttachIO) error
	}
	attachProvider interface {
		AttachToContainer(ctx context.Context, namespace, podName, containerName string, attach api.AttachIO) error
	}
	forwardProvider interface {
		PortForward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error
	}
	statsProvider interface {
		GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error)
	}
	metricsProvider interface {
		GetMetricsResource(context.Context) ([]*dto.MetricFamily, error)
	}
	probeMetricsProvider interface {
		GetMetricsProbes(context.Context) ([]*dto.MetricFamily, error)
	}
	nodeConfigurer interface {
		ConfigureNode(ctx context.Context, n *corev1.Node)
	}
)

// abilitiesOf returns the abilities of the type of p. A provider may still refuse a call.
func abilitiesOf(p any) (all []rpc.Ability) {
	has := func(ok bool, a ...rpc.Ability) {
		if ok {
			all = append(all, a...)
		}
	}
	_, is := p.(node.NodeProvider)
	has(is, rpc.Ability_ABILITY_PING, rpc.Ability_ABILITY_NODE_REPORTS)
	_, is = p.(node.PodNotifier)
	has(is, rpc.Ability_ABILITY_REPORTS)
	_, objects := p.(node.PodObjectsUser)
	_, tokens := p.(node.PodTokensUser)
	_, credentials := p.(node.PullCredentialsUser)
	has(objects || tokens || credentials, rpc.Ability_ABILITY_LOOKUPS)
	has(objects, rpc.Ability_ABILITY_POD_OBJECTS)
	_, is = p.(node.PodAuthority)
	has(is, rpc.Ability_ABILITY_AUTHORITY)
	_, is = p.(logsProvider)
	has(is, rpc.Ability_ABILITY_LOGS)
	_, is = p.(execProvider)
	has(is, rpc.Ability_ABILITY_EXEC)
	_, is = p.(attachProvider)
	has(is, rpc.Ability_ABILITY_ATTACH)
	_, is = p.(forwardProvider)
	has(is, rpc.Ability_ABILITY_PORT_FORWARD)
	_, is = p.(statsProvider)
	has(is, rpc.Ability_ABILITY_STATS)
	_, is = p.(metricsProvider)
	has(is, rpc.Ability_ABILITY_METRICS)
	_, is = p.(probeMetricsProvider)
	has(is, rpc.Ability_ABILITY_PROBE_METRICS)
	return all
}

// Handshake returns the abilities of the provider. The encoding is the same for all nodes.
func (s *server) Handshake(ctx context.Context, req *rpc.HandshakeRequest) (*rpc.HandshakeResponse, error) {
	if !slices.Contains(req.GetEncodings(), encoding) {
		return nil, callError(ctx, errdefs.InvalidInputf("the node does not understand the encoding %v", encoding), false)
	}
	answer := &rpc.HandshakeResponse{
		ProtocolVersion: wire.ProtocolVersion, Name: s.options.Name, Version: s.options.Version, Instance: s.instance,
		Encoding: encoding, Abilities: abilitiesOf(s.provider), MaxMessageBytes: int64(s.options.MaxMessageBytes),
	}
	if p, ok := s.provider.(nodeConfigurer); ok {
		n := &corev1.Node{}
		if err := json.Unmarshal(req.GetNodeJson(), n); err != nil {
			return nil, callError(ctx, errdefs.InvalidInputf("the node of the handshake: %w", err), false)
		}
		p.ConfigureNode(ctx, n)
		encoded, err := json.Marshal(n)
		if err != nil {
			return nil, callError(ctx, err, false)
		}
		answer.NodeJson = encoded
	}
	if p, ok := s.provider.(capability.Declarer); ok {
		answer.Declaration = declarationOf(p.Capabilities())
	}
	return answer, nil
}

func declarationOf(d capability.Declaration) *rpc.Declaration {
	out := &rpc.Declaration{}
	nothing, named := capability.Only(), capability.Only()
	for _, f := range capability.Features() {
		if d.Has(f) {
			named = named.Note("", f)
		}
	}
	for _, f := range capability.Features() {
		note := &rpc.FeatureNote{Feature: string(f), Note: d.Remark(f)}
		switch has := d.Has(f); {
		case has && note.Note == "" && nothing.Has(f): // the node assumes it, and older nodes do not know it
		case has:
			out.Has = append(out.Has, note)
		case note.Note != "" || named.Has(f): // without a note the node would assume it
			out.Lacks = append(out.Lacks, note)
		}
	}
	return out
}
