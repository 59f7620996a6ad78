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

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/azurebatch"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/entra"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/podblobs"
)

func init() { services["azurebatch"] = azurebatchService }

// azurebatchService returns Azure Batch with its storage, their token service and a new service principal. Its
// machines are directories of this machine, and its containers are programs of this machine.
func azurebatchService(ctx context.Context, b behind) service {
	const identity = "/subscriptions/s/resourceGroups/pods/providers/Microsoft.ManagedIdentity/userAssignedIdentities/pods"
	who := entra.Principal{Tenant: "tenant-emulated", Client: "client-emulated", Secret: rand.Text()}
	machines := &azurebatch.Processes{Dir: filepath.Join(b.dir, "machines"), Gentle: 2 * time.Second}
	var run azurebatch.Runner = machines
	nodes, programs := 2, &tasks{jobs: newJobs(b.runner)}
	if _, simulates := b.runner.(*simulated); simulates {
		run, nodes = programs, 256
	}
	pool := azurebatch.Pool{ID: "pods", VMSize: "Standard_D4s_v5", Slots: 8, SSH: true, Identity: identity}
	s := azurebatch.New(ctx, who, pool, nodes, run)
	programs.store = s.Store
	s.Lag = late
	return service{
		Handler: s, report: programs.takeReport, left: func() map[string][]string { return azurebatchLeft(s) }, operation: func(r *http.Request) string { return azurebatch.Operation(r, nil) },
		made: azurebatchMade, wait: s.Wait,
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

// azurebatchMade returns the task of a create request, and the name of its pod.
func azurebatchMade(r *http.Request, body, _ []byte) (id, pod string) {
	if azurebatch.Operation(r, nil) != "CreateTask" {
		return "", ""
	}
	var in struct{ ID, DisplayName string }
	_ = json.Unmarshal(body, &in) // a refused request has no name
	return in.ID, path.Base(in.DisplayName)
}

// azurebatchLeft returns the leftovers of pods. The job of a node stays, and so does the program of tasks.
func azurebatchLeft(s *azurebatch.Server) map[string][]string {
	left := map[string][]string{"tasks": nil, "blobs": s.Store.Names("vk-")}
	for _, t := range s.Tasks() {
		left["tasks"] = append(left["tasks"], t.ID)
	}
	return left
}

// tasks runs the pods of tasks at a runner, and writes the reports that their programs would write.
type tasks struct {
	*jobs
	store *azurebatch.Store
}

// Run implements azurebatch.Runner.
func (t *tasks) Run(ctx context.Context, s azurebatch.Start) (int, error) {
	var p podblobs.Package
	for _, f := range s.Files {
		if f.Path == podblobs.PackageFile {
			if err := json.Unmarshal(f.Data, &p); err != nil {
				return 1, err
			}
		}
	}
	pod := p.Bundle.Pod
	pod.Namespace, pod.Name = s.Job, s.ID
	reports, endPod, err := t.startPod(ctx, pod)
	if err != nil {
		return 1, err
	}
	defer endPod()
	look := time.NewTicker(p.Every)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return 137, nil
		case <-look.C:
			if meta, there := t.store.Metadata(podblobs.BundleName(p.Prefix, p.UID)); !there || podblobs.StopOf(meta) != nil {
				t.stopPod(pod)
			}
		case now := <-reports:
			data, meta, err := podblobs.Written(podjob.Status{Pod: now.Status, Job: s.ID, Host: s.Node, Ended: hasEnded(now)})
			if err != nil {
				return 1, err
			}
			t.store.PutWith(podblobs.StatusName(p.Prefix, p.UID), data, meta)
			if hasEnded(now) {
				return 0, nil
			}
		}
	}
}
