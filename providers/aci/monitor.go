// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

const (
	// metricsVersion is the version of the API of metrics of several resources.
	metricsVersion = "2023-10-01"
	metricsOf      = "microsoft.containerinstance/containergroups"
	// metricsTogether is the maximum number of groups in a request.
	metricsTogether = 50
	// metricsEvery is the interval of new values.
	metricsEvery = time.Minute
	// metricsBack is the maximum age of the last value of a group.
	metricsBack = 5 * time.Minute
)

// monitor reads the usage of containers from Azure Monitor.
type monitor struct {
	pipeline runtime.Pipeline
	config   Config

	mu    sync.Mutex       // held during a request to Azure Monitor, so that two callers share one request
	asked time.Time        // guarded by mu
	last  map[string]usage // guarded by mu; keyed by group and container
}

// usage is the usage of a container.
type usage struct {
	milliCPU, memory *float64
	at               time.Time
}

func newMonitor(c Config, credential azcore.TokenCredential, through *http.Client) *monitor {
	bearer := runtime.NewBearerTokenPolicy(credential, []string{strings.TrimSuffix(c.Cloud.MetricsAudience, "/") + "/.default"}, nil)
	return &monitor{
		config: c,
		pipeline: runtime.NewPipeline("virtual-kubelet-aci", "1", runtime.PipelineOptions{PerRetry: []policy.Policy{bearer}}, &policy.ClientOptions{
			Transport: through, Retry: policy.RetryOptions{MaxRetries: -1},
		}),
	}
}

// metricsAnswer is an answer of Azure Monitor.
type metricsAnswer struct {
	Values []struct {
		ResourceID string `json:"resourceid"`
		Value      []struct {
			Name       struct{ Value string }
			Timeseries []struct {
				Metadatavalues []struct {
					Name  struct{ Value string }
					Value string
				}
				Data []struct {
					TimeStamp time.Time
					Average   *float64
				}
			}
		}
	}
}

// read returns the usage of the containers of groups in the last minute with values.
func (m *monitor) read(ctx context.Context, groups []string) (map[string]usage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.asked) < metricsEvery {
		return m.last, nil
	}
	now := time.Now().UTC()
	out := map[string]usage{}
	for some := range slices.Chunk(slices.Sorted(slices.Values(groups)), metricsTogether) {
		answer, err := m.batch(ctx, some, now)
		if err != nil {
			return nil, err
		}
		answer.addTo(out)
	}
	m.asked, m.last = now, out
	return out, nil
}

// addTo adds the last value of each container.
func (a *metricsAnswer) addTo(out map[string]usage) {
	for _, of := range a.Values {
		group := of.ResourceID[strings.LastIndex(of.ResourceID, "/")+1:]
		for _, metric := range of.Value {
			for _, series := range metric.Timeseries {
				name := group + "/"
				for _, v := range series.Metadatavalues {
					if strings.EqualFold(v.Name.Value, "containerName") {
						name = group + "/" + v.Value
					}
				}
				u := out[name]
				for _, point := range series.Data {
					switch {
					case point.Average == nil:
						continue
					case metric.Name.Value == "CpuUsage":
						u.milliCPU = point.Average
					default:
						u.memory = point.Average
					}
					u.at = point.TimeStamp
				}
				out[name] = u
			}
		}
	}
}

func (m *monitor) batch(ctx context.Context, groups []string, now time.Time) (out *metricsAnswer, err error) {
	c := m.config
	var ids []string
	for _, name := range groups {
		ids = append(ids, "/subscriptions/"+c.SubscriptionID+"/resourceGroups/"+c.ResourceGroup+"/providers/Microsoft.ContainerInstance/containerGroups/"+name)
	}
	r, err := runtime.NewRequest(ctx, http.MethodPost, runtime.JoinPaths(c.Cloud.Metrics, "subscriptions", url.PathEscape(c.SubscriptionID), "metrics:getBatch"))
	if err != nil {
		return nil, err
	}
	r.Raw().URL.RawQuery = url.Values{
		"api-version": {metricsVersion}, "metricnamespace": {metricsOf}, "metricnames": {"CpuUsage,MemoryUsage"}, "aggregation": {"average"}, "interval": {"PT1M"},
		"filter": {"containerName eq '*'"}, "starttime": {now.Add(-metricsBack).Format(time.RFC3339)}, "endtime": {now.Format(time.RFC3339)},
	}.Encode()
	if err := runtime.MarshalAsJSON(r, map[string]any{"resourceids": ids}); err != nil {
		return nil, err
	}
	return out, send(m.pipeline, r, "read metrics", &out)
}
