// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/azurebatch"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/entra"
)

func init() { services["azurebatch"] = azurebatchService }

// azurebatchService is Azure Batch with its storage, with what gives tokens for them, and a service principal that it makes. Its machines are
// directories of this one, and containers are programs of this machine.
func azurebatchService(ctx context.Context, b behind) service {
	const identity = "/subscriptions/s/resourceGroups/pods/providers/Microsoft.ManagedIdentity/userAssignedIdentities/pods"
	who := entra.Principal{Tenant: "tenant-emulated", Client: "client-emulated", Secret: rand.Text()}
	machines := &azurebatch.Processes{Dir: filepath.Join(b.dir, "machines"), Gentle: 2 * time.Second}
	pool := azurebatch.Pool{ID: "pods", VMSize: "Standard_D4s_v5", Slots: 8, SSH: true, Identity: identity}
	s := azurebatch.New(ctx, who, pool, 2, machines)
	s.Lag = late
	return service{
		Handler: s, report: func(*corev1.Pod) {}, operation: func(r *http.Request) string { return azurebatch.Operation(r, nil) }, made: azurebatchMade, wait: s.Wait,
		settings: func(url, caFile string) string {
			machines.Env = []string{"AZURE_POD_IDENTITY_AUTHORITY_HOST=" + url, "SSL_CERT_FILE=" + caFile}
			return fmt.Sprintf(`apiVersion: azurebatch.virtual-kubelet.io/v1alpha1
kind: AzureBatchProviderConfiguration
endpoint: %[1]s
pool: pods
clusterName: demo
storage: {containerURL: "%[1]s%[2]s", identity: %[3]s}
cloud: {authority: %[1]q, scope: %[4]q, caFile: %[5]q}
credentials: {tenantID: %[6]s, clientID: %[7]s, clientSecret: %[8]s}
containers: programs
ssh: {enabled: true}
`, url, azurebatch.ContainerPath, identity, azurebatch.Batch, caFile, who.Tenant, who.Client, who.Secret)
		},
		// No rates are published.
		rates: []emulator.Rate{}, throttled: azurebatch.Throttle,
	}
}

// azurebatchMade is the task that a request made, and the name of its pod.
func azurebatchMade(r *http.Request, body, _ []byte) (id, pod string) {
	if azurebatch.Operation(r, nil) != "CreateTask" {
		return "", ""
	}
	var in struct{ ID, DisplayName string }
	_ = json.Unmarshal(body, &in) // one that is refused has none
	return in.ID, path.Base(in.DisplayName)
}
