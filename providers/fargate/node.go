// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/nodehealth"
)

// ConfigureNode implements cli.NodeConfigurer.
func (p *provider) ConfigureNode(_ context.Context, n *corev1.Node) {
	nodehealth.Well(n, "Fargate")
	n.Status.Capacity, n.Status.Allocatable = p.config.Capacity.DeepCopy(), p.config.Capacity.DeepCopy()
	n.Status.NodeInfo.Architecture = map[string]string{"X86_64": "amd64", "ARM64": "arm64"}[p.config.Architecture]
}

// Ping implements node.NodeProvider. It costs no request: the rounds that ask for the states of pods tell whether ECS answers.
func (p *provider) Ping(ctx context.Context) error {
	if err := p.cache.Away(); err != nil {
		return fmt.Errorf("ECS does not tell the states of pods %w", err)
	}
	if err := p.cache.Wait(ctx); err != nil {
		return errors.Join(errors.New("ECS has not answered yet"), err)
	}
	return nil
}

// NotifyNodeStatus implements node.NodeProvider: what the node offers is what the configuration says.
func (p *provider) NotifyNodeStatus(context.Context, func(*corev1.Node)) {}

// Examine implements cli.Examiner.
func (p *provider) Examine(ctx context.Context) error {
	if err := p.service.ping(ctx); err != nil {
		return err
	}
	if _, err := p.service.started(ctx, p.mapping.startedBy()); err != nil {
		return err
	}
	if p.config.LogGroup == "" {
		return nil
	}
	_, _, err := p.service.log(ctx, p.config.LogGroup, streamPrefix+"/doctor", "", time.Time{})
	switch {
	case errdefs.IsNotFound(err) && strings.Contains(err.Error(), "log group"): // and not the stream, which is nobody's
		return fmt.Errorf("%w: make the group, or configure logGroup: a task whose group is not there does not start", err)
	case errdefs.IsNotFound(err):
		return nil
	}
	return err
}
