// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// agent is a program that keeps the pods of a node. It is started as a child process and
// measured from outside, so that any such program can be compared.
type agent struct {
	name     string
	settings string // what the report says about how it is run
	command  func(credentials) *exec.Cmd
}

// virtualKubelet is the agent of this project, with pods that start and stop at once.
func virtualKubelet(bin string, settings ...string) agent {
	return agent{name: "virtual-kubelet", settings: strings.Join(settings, " "), command: func(c credentials) *exec.Cmd {
		own := []string{
			"--kubeconfig=" + c.kubeconfig, "--nodename=" + c.node, "--provider=mock",
			"--node-ip=127.0.0.1", "--listen-address=127.0.0.1", "--port=0",
			"--tls-cert-file=" + c.cert, "--tls-private-key-file=" + c.key, "--client-ca-file=" + c.rootCA,
		}
		return exec.Command(filepath.Join(bin, "virtual-kubelet"), append(own, settings...)...) //nolint:noctx // it is ended by stop, gently
	}}
}

// join starts the agent as a node of the cluster and returns when the node is ready.
func (a agent) join(ctx context.Context, c *cluster, node string, show bool) (*process, error) {
	creds, err := c.credentials(ctx, node)
	if err != nil {
		return nil, err
	}
	p, err := start(a.name, a.command(creds), show)
	if err != nil {
		return nil, err
	}
	if err := awaitReady(ctx, c, node, p); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// awaitReady returns when the node is ready, or with an error when its agent has ended.
func awaitReady(ctx context.Context, c *cluster, node string, p *process) error {
	w, err := c.client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", node).String(),
	})
	if err != nil {
		return fmt.Errorf("watch node %s: %w", node, err)
	}
	defer w.Stop()
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				return fmt.Errorf("watch node %s: %w", node, errors.Join(ctx.Err(), errWatchEnded))
			}
			if n, ok := event.Object.(*corev1.Node); ok && isReady(n) {
				return nil
			}
		case <-p.done:
			return p.lost()
		case <-ctx.Done():
			return fmt.Errorf("wait for node %s to be ready: %w: %s", node, context.Cause(ctx), p.said)
		}
	}
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
