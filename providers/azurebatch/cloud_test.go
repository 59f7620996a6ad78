// SPDX-License-Identifier: Apache-2.0

//go:build linux

package azurebatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/azurebatch"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/entra"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

const (
	tenant, clientID, clientSecret = "tenant-1", "client-1", "canary-secret-1"
	poolIdentity                   = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/pods"
)

// cloud is an emulator of Azure Batch whose machines are directories of this machine.
type cloud struct {
	*emulated.Server
	front     *emulator.Front
	processes *emulated.Processes
	url, ca   string
	close     func() // after ctx has ended
}

// aPool returns a pool that can run pods.
func aPool() emulated.Pool {
	return emulated.Pool{ID: "pods", VMSize: "Standard_D4s_v5", Slots: 16, SSH: true, Identity: poolIdentity}
}

// large has the programs that machines need, and thisProgram is the program that tasks run: the test's own program.
var large, thisProgram = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "batch-large-")
	if err != nil {
		panic(err)
	}
	return dir
}), sync.OnceValue(func() []byte {
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		panic(err)
	}
	return data
})

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(large())
	os.Exit(code)
}

// testCloud starts a cloud that runs until the test ends. A nil runner runs processes.
func testCloud(t *testing.T, pool emulated.Pool, nodes int, runner emulated.Runner) *cloud {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	c, err := startCloud(ctx, pool, nodes, runner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); c.close() })
	return c
}

// startCloud starts a cloud that runs until ctx ends.
func startCloud(ctx context.Context, pool emulated.Pool, nodes int, runner emulated.Runner) (*cloud, error) {
	dir, err := os.MkdirTemp("", "batch-") // the paths of its sockets must be short
	if err != nil {
		return nil, err
	}
	c := &cloud{processes: &emulated.Processes{Dir: dir, Large: large()}, ca: filepath.Join(dir, "ca.pem")}
	if runner == nil {
		runner = c.processes
	}
	c.Server = emulated.New(ctx, entra.Principal{Tenant: tenant, Client: clientID, Secret: clientSecret}, pool, nodes, runner)
	sum := sha256.Sum256(thisProgram())
	c.Store.Put("bin/virtual-kubelet-"+hex.EncodeToString(sum[:16]), thisProgram())
	c.Page = 7
	c.front = emulator.NewFront(emulated.Operation, c.Server)
	server := httptest.NewUnstartedServer(c.front)
	server.EnableHTTP2 = true
	server.StartTLS()
	c.url = server.URL
	c.processes.Env = []string{"AZURE_POD_IDENTITY_AUTHORITY_HOST=" + c.url, "SSL_CERT_FILE=" + c.ca}
	c.close = func() { c.Wait(); server.Close(); _ = os.RemoveAll(dir) }
	return c, os.WriteFile(c.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600)
}

// config returns a configuration for this cloud.
func (c *cloud) config(cluster string) Config {
	return Config{
		Endpoint: c.url, Pool: "pods", ClusterName: cluster, Containers: programs, SSH: SSH{Enabled: true},
		Storage:     Storage{ContainerURL: c.url + emulated.ContainerPath, Identity: poolIdentity},
		Cloud:       Cloud{Authority: c.url, Scope: emulated.Batch, CAFile: c.ca},
		Credentials: azlogin.Credentials{TenantID: tenant, ClientID: clientID, ClientSecret: config.Literal(clientSecret)},
	}
}

// quick returns a fast pace for tests.
func quick() pace {
	return pace{busy: 50 * time.Millisecond, rest: 100 * time.Millisecond, list: 200 * time.Millisecond, look: 100 * time.Millisecond, sweep: 200 * time.Millisecond, pool: 5 * time.Minute, seen: time.Second}
}
