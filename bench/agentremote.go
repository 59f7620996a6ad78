// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// onRemote is this project's agent with provider tensilekube, whose pods run in a second cluster on a node of
// provider mock. The second cluster is not counted.
type onRemote struct{ *ours }

func (onRemote) describeSettings() string {
	return "virtual-kubelet --provider=tensilekube, all else by default; the lower cluster has a scheduler and one node of provider mock"
}

// remoteConfig maps the namespace of the pods: the lower cluster has nothing that makes the service account of a
// namespace made on demand.
const remoteConfig = `apiVersion: tensilekube.virtual-kubelet.io/v1alpha1
kind: TensileKubeProviderConfiguration
kubeconfig: %[1]s
clusterName: bench
namespaces: {%[2]s: %[2]s}
placement: {tolerations: [{operator: Exists}]}
`

func (a onRemote) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	base := filepath.Join(m.base, "lower", prefix)
	low, err := a.startLower(ctx, m, base, prefix)
	if err != nil {
		return nil, fmt.Errorf("start the lower cluster: %w", err)
	}
	file := filepath.Join(base, "tensilekube.yaml")
	if err := writeConfig(file, fmt.Sprintf(remoteConfig, low.kubeconfig, prefix)); err != nil {
		low.stop()
		return nil, err
	}
	node, err := a.startWith(ctx, m, s, prefix, []string{"--provider=tensilekube", "--provider-config=" + file})
	if err != nil {
		low.stop()
		return nil, err
	}
	node.lower, node.stopped = low, low.stop
	return node, nil
}

// lower is the cluster for the pods of an agent, with a log of the agent's requests.
type lower struct {
	*machine
	worker      *process
	controllers *process // that make pods of other objects; nil: no controllers
}

// startLower starts a cluster whose pods run on a node of provider mock, with a namespace for them. The node is
// another user than the agent, so its requests are not in the log.
func (a onRemote) startLower(ctx context.Context, m *machine, base, namespace string, flags ...string) (_ *lower, err error) {
	if err := os.MkdirAll(base, 0o755); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	low := &lower{}
	if low.machine, err = startMachine(ctx, m.cfg, base, append(flags, "--scheduler=true")...); err != nil {
		return nil, err
	}
	worker := *low.machine
	worker.kubeconfig = filepath.Join(base, clusterName, "kubeconfig")
	mock := ours{as: "worker", program: a.program}
	low.worker, err = mock.startWith(ctx, &worker, scenario{Nodes: 1}, "worker", []string{"--provider=mock"})
	if err == nil {
		err = makeNamespace(ctx, low.client, namespace)
	}
	if err != nil {
		low.stop()
		return nil, err
	}
	return low, nil
}

func (l *lower) stop() {
	if l.controllers != nil {
		l.controllers.stop()
	}
	if l.worker != nil {
		l.worker.stop()
	}
	l.machine.stop()
}
