// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/aci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// These are the account and the place of the tests in Azure.
const (
	tenant, clientID, clientSecret = "tenant-1", "client-1", "canary-secret-1"
	subnet                         = "/subscriptions/sub-1/resourceGroups/pods/providers/Microsoft.Network/virtualNetworks/net/subnets/pods"
)

// role has the actions of the custom role in the README. The emulator denies all others.
var role = readRole()

func readRole() []string {
	text, err := os.ReadFile("README.md")
	if err != nil {
		panic(err)
	}
	_, after, _ := strings.Cut(string(text), "\"Actions\": [")
	actions, _, _ := strings.Cut(after, "]")
	var out []string
	for _, quoted := range strings.Split(actions, ",") {
		out = append(out, strings.Trim(strings.TrimSpace(quoted), "\""))
	}
	return out
}

// azure is an emulator of ACI whose containers are goroutines.
type azure struct {
	*emulated.Server
	front  *emulator.Front
	cloud  *inprocess.Cloud
	url    string
	caFile string
	pods   corev1listers.PodLister // the pods of the cluster; nil: they are not known
}

// secrets returns the files of groups in the form that inprocess reads.
type secrets struct {
	corev1listers.SecretLister
	objects *emulator.Objects
}

// Secrets implements corev1listers.SecretLister.
func (s secrets) Secrets(string) corev1listers.SecretNamespaceLister {
	return groupSecrets{objects: s.objects}
}

type groupSecrets struct {
	corev1listers.SecretNamespaceLister
	objects *emulator.Objects
}

// Get implements corev1listers.SecretNamespaceLister.
func (s groupSecrets) Get(name string) (*corev1.Secret, error) {
	group, _, _ := strings.Cut(name, ".")
	return s.objects.Secret(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: group}}, name)
}

// startAzure starts an emulator that runs until ctx ends.
func startAzure(ctx context.Context, dir string) (*azure, error) {
	a := &azure{cloud: inprocess.New(ctx)}
	objects := &emulator.Objects{}
	runner := shelled{inprocess.Open(a.cloud, inprocess.Objects{Secrets: secrets{objects: objects}})}
	go func() { _ = runner.RunInBackground(ctx) }() // ends with ctx
	return a, a.start(ctx, dir, runner, objects, late)
}

// late is the delay of lists.
const late = 50 * time.Millisecond

// start opens the service before the runner of its containers.
func (a *azure) start(ctx context.Context, dir string, runner runner, objects *emulator.Objects, lag time.Duration) error {
	fleet := emulator.NewFleet(runner, objects, lag)
	runner.NotifyPods(ctx, fleet.Report)
	a.Server = emulated.New(fleet, emulated.Place{Subscription: "sub-1", ResourceGroup: "pods", Region: "westeurope"},
		emulated.Principal{Tenant: tenant, Client: clientID, Secret: clientSecret})
	a.Role, a.Subnets, a.Plain, a.Page, a.Grace = role, []string{subnet}, []string{subnet + "-plain"}, 7, 2
	a.front = emulator.NewFront(emulated.Operation, a.Server)
	server := httptest.NewUnstartedServer(a.front)
	server.EnableHTTP2 = true // as Azure does
	server.StartTLS()
	context.AfterFunc(ctx, server.Close)
	a.url, a.caFile = server.URL, filepath.Join(dir, "ca.pem")
	return os.WriteFile(a.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600)
}

// runner runs the containers of groups.
type runner interface {
	nodeutil.Provider
	NotifyPods(ctx context.Context, notify func(*corev1.Pod))
}

// config returns a configuration for this cloud.
func (a *azure) config(cluster string) Config {
	return Config{
		SubscriptionID: "sub-1", ResourceGroup: "pods", Region: "westeurope", ClusterName: cluster,
		Cloud: Cloud{Endpoint: a.url, Authority: a.url, Metrics: a.url, MetricsAudience: a.url, CAFile: a.caFile},
		Stats: true, ExecProbeEvery: metav1.Duration{Duration: time.Second},
		Credentials: azlogin.Credentials{TenantID: tenant, ClientID: clientID, ClientSecret: config.Literal(clientSecret)},
		Network:     Network{VNet: "net", Subnet: "pods"},
		Requests:    Requests{AtRest: 1 << 20},
	}
}

// answers makes the handler answer every request to ACI, until the returned function is called with false.
func (a *azure) answers(h http.HandlerFunc) func(bool) {
	mend := func() {}
	return func(on bool) {
		mend()
		mend = func() {}
		if on {
			mend = a.front.Break(emulator.Fault{Operations: []string{"List", "Get", "Create", "Delete", "Stop", "Restart", "Logs", "Exec", "Metrics"}, Answer: h})
		}
	}
}

// id returns the ID of a pod's group in the fleet.
func (a *azure) id(owner identity.Owner, pod *corev1.Pod) types.UID {
	return types.UID(a.ID(owner.Name(identity.Of(pod))))
}

func testAzure(t *testing.T) *azure {
	t.Helper()
	a, err := startAzure(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}
