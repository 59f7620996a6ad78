// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net/http"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

const statsSummaryRoute = "/stats/summary"

// PodStatsSummaryHandlerFunc returns the resource usage of the node and its pods.
type PodStatsSummaryHandlerFunc func(ctx context.Context) (*statsv1alpha1.Summary, error)

// PodStatsSummaryHandler returns a handler that answers GET /stats/summary with the result of f, and every other
// path with 404. With a nil f it answers 501 to everything.
func PodStatsSummaryHandler(f PodStatsSummaryHandlerFunc) http.Handler {
	if f == nil {
		return http.HandlerFunc(NotImplemented)
	}
	r := newRouter()
	r.handle(statsSummaryRoute, HandlePodStatsSummary(f), http.MethodGet)
	return r
}

// HandlePodStatsSummary returns a handler that answers with the result of h, as JSON. With a nil h the handler
// answers 501.
func HandlePodStatsSummary(h PodStatsSummaryHandlerFunc) http.HandlerFunc {
	if h == nil {
		return NotImplemented
	}
	return answerErrors(func(w http.ResponseWriter, req *http.Request) error {
		summary, err := h(req.Context())
		if err != nil {
			return fmt.Errorf("get the stats summary: %w", err)
		}
		return writeJSON(w, summary)
	})
}
