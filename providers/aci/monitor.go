// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"net/http"
	"net/url"
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
	// metricsTogether is how many groups one request may be about.
	metricsTogether = 50
	// metricsEvery is how often there are new values.
	metricsEvery = time.Minute
	// metricsBack is how far back the last value of a group may be.
	metricsBack = 5 * time.Minute
)

// monitor reads from Azure Monitor what containers use.
type monitor struct {
	pipeline runtime.Pipeline
	endpoint string
	config   Config

	mu    sync.Mutex       // held while Azure Monitor is asked, so that two who ask are one
	asked time.Time        // guarded by mu
	last  map[string]usage // guarded by mu; by group and container
}

// usage is what a container uses.
type usage struct {
	milliCPU, memory *float64
	at               time.Time
}

func newMonitor(c Config, credential azcore.TokenCredential, through *http.Client) (*monitor, error) {
	bearer := runtime.NewBearerTokenPolicy(credential, []string{strings.TrimSuffix(c.Cloud.MetricsAudience, "/") + "/.default"}, nil)
	return &monitor{
		endpoint: c.Cloud.Metrics, config: c,
		pipeline: runtime.NewPipeline("virtual-kubelet-aci", "1", runtime.PipelineOptions{PerRetry: []policy.Policy{bearer}}, &policy.ClientOptions{
			Transport: through, Retry: policy.RetryOptions{MaxRetries: -1},
		}),
	}, nil
}

// answered by Azure Monitor.
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

// read returns what the containers of groups use, as of the last minute that has values.
func (m *monitor) read(ctx context.Context, groups []string) (map[string]usage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.asked) < metricsEvery {
		return m.last, nil
	}
	now := time.Now().UTC()
	out := map[string]usage{}
	for len(groups) > 0 {
		n := min(len(groups), metricsTogether)
		answer, err := m.batch(ctx, groups[:n], now)
		if err != nil {
			return nil, err
		}
		for _, of := range answer.Values {
			add(out, of.ResourceID[strings.LastIndex(of.ResourceID, "/")+1:], answer, of.ResourceID)
		}
		groups = groups[n:]
	}
	m.asked, m.last = now, out
	return out, nil
}

// add takes the last value of each container of a group.
func add(out map[string]usage, group string, answer *metricsAnswer, id string) {
	for _, of := range answer.Values {
		if of.ResourceID != id {
			continue
		}
		for _, metric := range of.Value {
			for _, series := range metric.Timeseries {
				container := ""
				for _, v := range series.Metadatavalues {
					if strings.EqualFold(v.Name.Value, "containerName") {
						container = v.Value
					}
				}
				u := out[group+"/"+container]
				for _, point := range series.Data {
					if point.Average == nil {
						continue
					}
					u.at = point.TimeStamp
					if metric.Name.Value == "CpuUsage" {
						u.milliCPU = point.Average
					} else {
						u.memory = point.Average
					}
				}
				out[group+"/"+container] = u
			}
		}
	}
}

func (m *monitor) batch(ctx context.Context, groups []string, now time.Time) (*metricsAnswer, error) {
	c := m.config
	var ids []string
	for _, name := range groups {
		ids = append(ids, "/subscriptions/"+c.SubscriptionID+"/resourceGroups/"+c.ResourceGroup+"/providers/Microsoft.ContainerInstance/containerGroups/"+name)
	}
	r, err := runtime.NewRequest(ctx, http.MethodPost, runtime.JoinPaths(m.endpoint, "subscriptions", url.PathEscape(c.SubscriptionID), "metrics:getBatch"))
	if err != nil {
		return nil, err
	}
	q := r.Raw().URL.Query()
	for name, value := range map[string]string{
		"api-version": metricsVersion, "metricnamespace": metricsOf, "metricnames": "CpuUsage,MemoryUsage", "aggregation": "average", "interval": "PT1M",
		"filter": "containerName eq '*'", "starttime": now.Add(-metricsBack).Format(time.RFC3339), "endtime": now.Format(time.RFC3339),
	} {
		q.Set(name, value)
	}
	r.Raw().URL.RawQuery = q.Encode()
	if err := runtime.MarshalAsJSON(r, map[string]any{"resourceids": ids}); err != nil {
		return nil, err
	}
	answer, err := m.pipeline.Do(r)
	if err != nil {
		return nil, explain("read metrics", err)
	}
	defer answer.Body.Close()
	if !runtime.HasStatusCode(answer, http.StatusOK) {
		return nil, explain("read metrics", runtime.NewResponseError(answer))
	}
	out := &metricsAnswer{}
	return out, runtime.UnmarshalAsJSON(answer, out)
}
