// SPDX-License-Identifier: Apache-2.0

package repo_test

import (
	"slices"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
)

// controllerBudget lists the modules of a program that imports node and node/api.
var controllerBudget = []repocheck.Budget{
	{Why: "the public API is made of these types, clients and listers", Modules: []string{
		"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/kubelet",
	}},
	{Why: "pointers, clocks and exec's exit codes, and the logger of all Kubernetes libraries", Modules: []string{
		"k8s.io/utils", "k8s.io/klog/v2", "github.com/go-logr/logr",
	}},
	{Why: "what a pod requests, summed as the scheduler and a kubelet do", Modules: []string{
		"k8s.io/component-helpers",
	}},
	{Why: "exec, attach and port-forward, over SPDY and WebSocket", Modules: []string{
		"k8s.io/cri-streaming", "k8s.io/streaming", "github.com/moby/spdystream", "golang.org/x/net",
	}},
	{Why: "programs in the field mount our handlers in a gorilla router and rely on its variables", Modules: []string{
		"github.com/gorilla/mux",
	}},
	{Why: "MetricFamily is in the public API, and the library has metrics of its own", Modules: []string{
		"github.com/prometheus/client_golang", "github.com/prometheus/client_model", "github.com/prometheus/common",
		"github.com/prometheus/procfs", "github.com/beorn7/perks", "github.com/cespare/xxhash/v2",
	}},
	{Why: "client-go and apimachinery encode, decode, merge and patch objects with them", Modules: []string{
		"sigs.k8s.io/json", "sigs.k8s.io/yaml", "sigs.k8s.io/randfill", "sigs.k8s.io/structured-merge-diff/v6",
		"github.com/fxamacker/cbor/v2", "github.com/x448/float16", "github.com/json-iterator/go",
		"github.com/modern-go/concurrent", "github.com/modern-go/reflect2", "github.com/munnerz/goautoneg",
		"go.yaml.in/yaml/v2", "go.yaml.in/yaml/v3", "google.golang.org/protobuf", "gopkg.in/inf.v0",
		"gopkg.in/evanphx/json-patch.v4", "github.com/davecgh/go-spew", "github.com/pmezard/go-difflib",
	}},
	{Why: "client-go talks to the API server with them", Modules: []string{
		"github.com/google/uuid", "golang.org/x/oauth2", "golang.org/x/sys", "golang.org/x/term", "golang.org/x/text", "golang.org/x/time",
	}},
	{Why: "client-go's discovery client, part of every clientset, reads OpenAPI", Modules: []string{
		"k8s.io/kube-openapi", "github.com/google/gnostic-models", "github.com/emicklei/go-restful/v3",
		"github.com/go-openapi/jsonpointer", "github.com/go-openapi/jsonreference", "github.com/go-openapi/swag",
		"github.com/josharian/intern", "github.com/mailru/easyjson", "gopkg.in/yaml.v3",
	}},
}

// authBudget lists the modules that nodeutil adds to authenticate and authorize requests. Its public API has types of k8s.io/apiserver,
// which requires the others.
var authBudget = []repocheck.Budget{
	{Why: "delegated authentication and authorization, and certificates that are read again when they change", Modules: []string{
		"k8s.io/apiserver", "k8s.io/component-base", "github.com/fsnotify/fsnotify", "golang.org/x/sync",
	}},
	{Why: "k8s.io/component-base has flags and versions with them", Modules: []string{
		"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/blang/semver/v4",
	}},
	{Why: "k8s.io/apiserver evaluates match conditions of authorization webhooks", Modules: []string{
		"github.com/google/cel-go", "cel.dev/expr", "github.com/antlr4-go/antlr/v4", "golang.org/x/exp", "github.com/stoewer/go-strcase",
	}},
	{Why: "k8s.io/apiserver calls webhooks through an egress proxy if it is told to", Modules: []string{
		"sigs.k8s.io/apiserver-network-proxy/konnectivity-client", "google.golang.org/grpc",
	}},
	{Why: "k8s.io/component-base traces with OpenTelemetry", Modules: []string{
		"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/trace",
		"go.opentelemetry.io/otel/exporters/otlp/otlptrace", "go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc",
		"go.opentelemetry.io/proto/otlp", "go.opentelemetry.io/auto/sdk", "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp",
		"github.com/felixge/httpsnoop", "github.com/go-logr/stdr", "github.com/cenkalti/backoff/v5",
		"github.com/grpc-ecosystem/grpc-gateway/v2",
		"google.golang.org/genproto/googleapis/api", "google.golang.org/genproto/googleapis/rpc",
	}},
}

func TestDependencyBudget(t *testing.T) {
	tree := load(t)
	for _, tt := range []struct {
		budget   []repocheck.Budget
		packages []string
	}{
		{controllerBudget, []string{"./node", "./node/api"}},
		{slices.Concat(controllerBudget, authBudget), []string{"./node", "./node/api", "./node/nodeutil"}},
	} {
		breaches, err := tree.DependencyBudget(t.Context(), tt.budget, tt.packages...)
		if err != nil {
			t.Fatal(err)
		}
		report(t, "every provider pays for what these packages need: in build time, in conflicts of versions, in advisories to follow", breaches)
	}
}
