// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providertest/emulator/aci"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// Who the tests are in Azure, and where.
const (
	tenant, clientID, clientSecret = "tenant-1", "client-1", "canary-secret-1"
	subnet                         = "/subscriptions/sub-1/resourceGroups/pods/providers/Microsoft.Network/virtualNetworks/net/subnets/pods"
)

// role are the actions of the custom role in the README.
var role = []string{emulated.ActionRead, emulated.ActionWrite, emulated.ActionDelete, emulated.ActionLogs, emulated.ActionExec, emulated.ActionJoin}

// azure is an emulator of ACI whose containers are goroutines.
type azure struct {
	*emulated.Server
	front  *emulator.Front
	cloud  *inprocess.Cloud
	url    string
	caFile string
}

// keyed is a session whose input ends with the key that a terminal has for it.
type keyed struct{ api.AttachIO }

// Stdin implements api.AttachIO.
func (k keyed) Stdin() io.Reader { return keyedReader{k.AttachIO.Stdin()} }

type keyedReader struct{ io.Reader }

// Read implements io.Reader.
func (r keyedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if at := bytes.IndexByte(b[:n], 4); at >= 0 {
		return at, io.EOF
	}
	return n, err
}

// shelled runs the wrapper of exec where there is no shell.
type shelled struct{ *inprocess.Provider }

// RunInContainer runs a command, and says as the wrapper does how it ended.
func (s shelled) RunInContainer(ctx context.Context, namespace, pod, container string, command []string, attach api.AttachIO) error {
	if len(command) < 5 || !slices.Equal(command[:4], []string{"/bin/sh", "-c", wrapper, "sh"}) {
		return fmt.Errorf("%q is not the wrapper", command)
	}
	if attach.TTY() {
		attach = keyed{attach}
	}
	err := s.Provider.RunInContainer(ctx, namespace, pod, container, command[4:], attach)
	var exit interface{ ExitStatus() int }
	code := 0
	if errors.As(err, &exit) {
		code = exit.ExitStatus()
	} else if err != nil {
		return err
	}
	_, err = fmt.Fprintf(attach.Stdout(), "%s%d\n", mark, code)
	return err
}

// secrets are the files of groups, as inprocess reads them.
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

// startAzure starts one until ctx ends.
func startAzure(ctx context.Context, dir string) (*azure, error) {
	a := &azure{cloud: inprocess.New(ctx)}
	objects := &emulator.Objects{}
	runner := shelled{inprocess.Open(a.cloud, inprocess.Objects{Secrets: secrets{objects: objects}})}
	fleet := emulator.NewFleet(runner, objects, 0)
	runner.NotifyPods(ctx, fleet.Report)
	go func() { _ = runner.RunInBackground(ctx) }() // ends with ctx
	a.Server = emulated.New(fleet, emulated.Place{Subscription: "sub-1", ResourceGroup: "pods", Region: "westeurope"},
		emulated.Principal{Tenant: tenant, Client: clientID, Secret: clientSecret})
	a.Role, a.Subnets, a.Page, a.Grace = role, []string{subnet}, 7, 2
	a.front = emulator.NewFront(emulated.Operation, a.Server)
	server := httptest.NewTLSServer(a.front)
	context.AfterFunc(ctx, server.Close)
	a.url, a.caFile = server.URL, filepath.Join(dir, "ca.pem")
	return a, os.WriteFile(a.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600)
}

// config is one for this cloud.
func (a *azure) config(cluster string) Config {
	return Config{
		SubscriptionID: "sub-1", ResourceGroup: "pods", Region: "westeurope", ClusterName: cluster,
		Cloud:       Cloud{Endpoint: a.url, Authority: a.url, CAFile: a.caFile},
		Credentials: Credentials{TenantID: tenant, ClientID: clientID, ClientSecret: config.Literal(clientSecret)},
		Network:     Network{VNet: "net", Subnet: "pods"},
		Requests:    Requests{AtRest: 1 << 20},
	}
}

// answers lets every request to ACI be answered so, until it is called with false.
func (a *azure) answers(h http.HandlerFunc) func(bool) {
	mend := func() {}
	return func(on bool) {
		mend()
		mend = func() {}
		if on {
			mend = a.front.Break(emulator.Fault{Operations: []string{"List", "Get", "Create", "Delete", "Logs", "Exec"}, Answer: h})
		}
	}
}

// id is that of a pod's group in the fleet.
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
