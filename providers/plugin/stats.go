// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/grpc"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
)

// GetStatsSummary calls the plugin.
func (p *plugin) GetStatsSummary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	if err := p.requireAbility(rpc.Ability_ABILITY_STATS, "statistics"); err != nil {
		return nil, err
	}
	summary := &statsv1alpha1.Summary{}
	_, err := p.callPlugin(ctx, func(ctx context.Context, s *session, trailer grpc.CallOption) error {
		answer, err := s.GetStatsSummary(ctx, &rpc.StatsRequest{}, trailer)
		if err != nil {
			return err
		}
		return json.Unmarshal(answer.GetSummaryJson(), summary)
	})
	if err != nil {
		return nil, err
	}
	return summary, nil
}

// GetMetricsResource calls the plugin.
func (p *plugin) GetMetricsResource(ctx context.Context) ([]*dto.MetricFamily, error) {
	return p.pluginMetrics(ctx, rpc.Ability_ABILITY_METRICS, rpc.MetricsPage_METRICS_PAGE_RESOURCE)
}

// GetMetricsProbes calls the plugin.
func (p *plugin) GetMetricsProbes(ctx context.Context) ([]*dto.MetricFamily, error) {
	return p.pluginMetrics(ctx, rpc.Ability_ABILITY_PROBE_METRICS, rpc.MetricsPage_METRICS_PAGE_PROBES)
}

// pluginMetrics returns the metrics of the plugin. It returns nil if the plugin has no such metrics, so that a
// scraper still gets the node's other metrics.
func (p *plugin) pluginMetrics(ctx context.Context, ability rpc.Ability, page rpc.MetricsPage) (families []*dto.MetricFamily, err error) {
	if !p.agreed.hasAbility(ability) {
		return nil, nil
	}
	_, err = p.callPlugin(ctx, func(ctx context.Context, s *session, trailer grpc.CallOption) error {
		answer, err := s.GetMetrics(ctx, &rpc.MetricsRequest{Page: page}, trailer)
		if err != nil {
			return err
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		byName, err := parser.TextToMetricFamilies(bytes.NewReader(answer.GetText()))
		if err != nil {
			return fmt.Errorf("decode the metrics of plugin %s: %w", p.agreed.name, err)
		}
		for _, family := range byName {
			families = append(families, family)
		}
		return nil
	})
	return families, err
}
