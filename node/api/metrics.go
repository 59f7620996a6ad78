// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

const (
	// MetricsResourceRouteSuffix is the path of the resource metrics for metrics-server.
	MetricsResourceRouteSuffix = "/metrics/resource"
	// PrometheusTextFormatContentType is the media type of the resource metrics.
	PrometheusTextFormatContentType = "text/plain; version=0.0.4"
)

// PodMetricsResourceHandlerFunc returns the resource metrics of the node and its pods, under the names that a
// kubelet uses.
type PodMetricsResourceHandlerFunc func(ctx context.Context) ([]*dto.MetricFamily, error)

// PodMetricsResourceHandler returns a handler that answers GET /metrics/resource with the result of f, and every
// other path with 404. With a nil f it answers 501 to everything.
func PodMetricsResourceHandler(f PodMetricsResourceHandlerFunc) http.Handler {
	if f == nil {
		return http.HandlerFunc(NotImplemented)
	}
	r := newRouter()
	r.handle(MetricsResourceRouteSuffix, HandlePodMetricsResource(f), http.MethodGet)
	return r
}

// HandlePodMetricsResource returns a handler that answers with the result of h, in the Prometheus text format.
// With a nil h the handler answers 501.
func HandlePodMetricsResource(h PodMetricsResourceHandlerFunc) http.HandlerFunc {
	if h == nil {
		return NotImplemented
	}
	return answerErrors(func(w http.ResponseWriter, req *http.Request) error {
		families, err := h(req.Context())
		if err != nil {
			return fmt.Errorf("get the resource metrics: %w", err)
		}
		var body bytes.Buffer
		for _, family := range families {
			if _, err := expfmt.MetricFamilyToText(&body, family); err != nil {
				return fmt.Errorf("encode metric %s: %w", family.GetName(), err)
			}
		}
		w.Header().Set("Content-Type", PrometheusTextFormatContentType)
		_, _ = w.Write(body.Bytes()) // an error means that the client has disconnected
		return nil
	})
}
