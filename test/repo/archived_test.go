// SPDX-License-Identifier: Apache-2.0

package repo_test

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
)

// shipped are the modules that programs and libraries of a release are built from.
var shipped = []string{".", "podruntime", "providerrpc", "providers", "cmd/virtual-kubelet", "providers/process/gvisor", "devcluster", "deploy"}

// archived are modules that their authors have archived, those in a build first. The tests cannot query GitHub, so authors who add a
// dependency must check it there and add a row. Seen is the source of the date.
var archived = []repocheck.Archived{
	{Module: "github.com/json-iterator/go", Since: "2025-12-15", Seen: "github.com/mailgun/mailgun-go/issues/483",
		By: []string{"sigs.k8s.io/structured-merge-diff/v6"}, Why: "every program that talks to an API server has it until Kubernetes drops it", Instead: "encoding/json"},
	{Module: "gopkg.in/yaml.v2", Since: "2025-04-01", Seen: "github.com/oligot/go-mod-upgrade/issues/74",
		By: []string{"github.com/gophercloud/gophercloud/v2"}, Why: "it reads clouds.yaml with it, as every client of OpenStack in Go does", Instead: "go.yaml.in/yaml/v2"},
	{Module: "gopkg.in/yaml.v3", Since: "2025-04-01", Seen: "github.com/nginx-proxy/docker-gen/pull/789",
		By: []string{"github.com/go-openapi/swag"}, Why: "the oldest Kubernetes that the library is built with asks for this swag; newer versions of swag do without it", Instead: "go.yaml.in/yaml/v3"},
	{Module: "go.opencensus.io", Since: "2023-07-31", Seen: "github.com/kubernetes/kubernetes/issues/120276",
		By: []string{"github.com/virtual-kubelet/virtual-kubelet"}, Why: "programs in the field trace through the adapter, which nothing else imports", Instead: "go.opentelemetry.io/otel"},
	{Module: "github.com/google/btree", Since: "2026-01 or before", Seen: "github.com/kubernetes/kubernetes/issues/136415",
		By: []string{"github.com/peterbourgon/diskv", "gvisor.dev/gvisor"}, Why: "gVisor's TCP and kubectl's cache have it", Instead: "k8s.io/utils/third_party/forked/golang/btree"},
	{Module: "github.com/mitchellh/go-homedir", Since: "2024-07-22", Seen: "github.com/mgechev/revive/pull/1195",
		By: []string{"github.com/google/go-containerregistry"}, Why: "this version of go-containerregistry finds a user's registry credentials with it; later ones do without it", Instead: "os.UserHomeDir"},
	{Module: "github.com/mitchellh/mapstructure", Since: "2024", Seen: "github.com/cloudfoundry-community/go-cfenv/pull/29",
		By: []string{"github.com/hashicorp/nomad/api"}, Why: "this version of Nomad's client reads answers with it; later ones have the fork", Instead: "github.com/go-viper/mapstructure/v2"},
	{Module: "github.com/pkg/errors", Since: "2021-12-01", Seen: "github.com/k8snetworkplumbingwg/multus-cni/pull/1035",
		By: []string{"github.com/docker/cli"}, Why: "go-containerregistry reads Docker's configuration with docker/cli", Instead: "errors"},
	{Module: "github.com/mitchellh/copystructure", Since: "2026-02 or before", Seen: "github.com/openbao/openbao/issues/2129",
		By: []string{"github.com/Masterminds/sprig/v3"}, Why: "the tool that makes a release packs for Debian with nfpm, whose changelogs are templates of sprig; no program of the release has it", Instead: "a few lines"},

	{Module: "github.com/Azure/go-autorest", Since: "2025-02-12", Seen: "github.com/openbao/openbao/issues/2129", Instead: "github.com/Azure/azure-sdk-for-go/sdk"},
	{Module: "github.com/aws/aws-sdk-go", Since: "2025-07-31", Seen: "github.com/openbao/openbao/issues/2129", Instead: "github.com/aws/aws-sdk-go-v2"},
	{Module: "github.com/boltdb/bolt", Since: "2019-03-09", Seen: "github.com/openbao/openbao/issues/2129", Instead: "go.etcd.io/bbolt"},
	{Module: "github.com/dgrijalva/jwt-go", Since: "2026 or before", Seen: "github.com/oligot/go-mod-upgrade/issues/74", Instead: "github.com/golang-jwt/jwt/v5"},
	{Module: "github.com/envoyproxy/protoc-gen-validate", Since: "2026-05 or before", Seen: "github.com/kubernetes/kubernetes/issues/139389", Instead: "protovalidate"},
	{Module: "github.com/flynn/go-shlex", Since: "2026-02 or before", Seen: "github.com/kubernetes/kubernetes/pull/136798", Instead: "a few lines"},
	{Module: "github.com/form3tech-oss/jwt-go", Since: "2023-01 or before", Seen: "github.com/kubernetes/kubernetes/pull/114912", Instead: "github.com/golang-jwt/jwt/v5"},
	{Module: "github.com/golang/mock", Since: "2023-08 or before", Seen: "github.com/kubernetes/kubernetes/issues/120276", Instead: "a fake"},
	{Module: "github.com/golang/snappy", Since: "2025-03-07", Seen: "github.com/openbao/openbao/issues/2129", Instead: "github.com/klauspost/compress"},
	{Module: "github.com/google/gofuzz", Since: "2026-02 or before", Seen: "github.com/kubernetes/kubernetes/pull/136798", Instead: "sigs.k8s.io/randfill"},
	{Module: "github.com/google/shlex", Since: "2023-01 or before", Seen: "github.com/kubernetes/kubernetes/pull/114912", Instead: "a few lines"},
	{Module: "github.com/gregjones/httpcache", Since: "2023-08 or before", Seen: "github.com/kubernetes/kubernetes/issues/120276", Instead: "a few lines"},
	{Module: "github.com/grpc-ecosystem/go-grpc-prometheus", Since: "2023-08 or before", Seen: "github.com/kubernetes/kubernetes/issues/120276", Instead: "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"},
	{Module: "github.com/kr/pty", Since: "2026-02 or before", Seen: "github.com/kubernetes/kubernetes/pull/136798", Instead: "github.com/creack/pty"},
	{Module: "github.com/opentracing/opentracing-go", Since: "2026 or before", Seen: "github.com/oligot/go-mod-upgrade/issues/74", Instead: "go.opentelemetry.io/otel"},
}

func TestArchivedModulesHaveReasons(t *testing.T) {
	breaches, err := load(t).Archived(t.Context(), archived, shipped...)
	if err != nil {
		t.Fatal(err)
	}
	report(t, "nobody mends what is archived, and the next hole in it is ours", breaches)
}
