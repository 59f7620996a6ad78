// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// TestMetricsDoNotNeedTheBackend: a scrape of /metrics returns the metrics of the process and of the node within the 10 s that Prometheus
// waits. The page also has statistics of volumes, except when the provider does not answer.
func TestMetricsDoNotNeedTheBackend(t *testing.T) {
	for name, summary := range map[string]func(context.Context) (*statsv1alpha1.Summary, error){
		"is silent": func(ctx context.Context) (*statsv1alpha1.Summary, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"panics": func(context.Context) (*statsv1alpha1.Summary, error) { panic("no statistics") },
	} {
		t.Run("the provider "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
					VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}},
				}}}}
				if err := pods.Add(pod); err != nil {
					t.Fatal(err)
				}
				n := &Node{name: "n1", lister: corev1listers.NewPodLister(pods)}
				ctx, cancel := context.WithTimeout(t.Context(), scrapeTimeout)
				defer cancel()
				w := httptest.NewRecorder()
				nodeMetrics{n.name, n.lister, summary}.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
				if ctx.Err() != nil {
					t.Errorf("the answer took longer than the %v of a scrape", scrapeTimeout)
				}
				for _, want := range []string{`kubelet_node_name{node="n1"} 1`, "go_goroutines "} {
					if !strings.Contains(w.Body.String(), want) {
						t.Errorf("the answer %d lacks %s", w.Code, want)
					}
				}
			})
		})
	}
}

// scrapeTimeout is the default time for which Prometheus waits for an answer.
const scrapeTimeout = 10 * time.Second
