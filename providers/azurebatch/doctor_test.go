// SPDX-License-Identifier: Apache-2.0

//go:build linux

package azurebatch

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/azurebatch"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestDoctor: for each mistake, the command doctor reports what to do.
func TestDoctor(t *testing.T) {
	for _, c := range []struct {
		name  string
		seed  func(p *emulated.Pool, h *home)
		wants []string // none: all is well
	}{
		{"no mistake", nil, nil},
		{"a pool that is none", func(_ *emulated.Pool, h *home) { h.config.Pool = "other" }, []string{"PoolNotFound", "correct pool"}},
		{"a pool with containers", func(p *emulated.Pool, _ *home) { p.Containers = true }, []string{"containerConfiguration", "make a pool without one"}},
		{"a pool with Windows", func(p *emulated.Pool, _ *home) { p.Windows = true }, []string{"has Windows"}},
		{"a pool without the identity", func(p *emulated.Pool, _ *home) { p.Identity = "" }, []string{"storage.identity"}},
		{"a size that is not known", func(p *emulated.Pool, _ *home) { p.VMSize = "Standard_NC6" }, []string{"set nodeResources"}},
		{"a pool that scales", func(p *emulated.Pool, _ *home) { p.AutoScale = true }, []string{"set maxNodes"}},
		{"a pool without GPUs", func(_ *emulated.Pool, h *home) { h.config.GPUs = GPUs{"nvidia.com/gpu", 1} }, []string{"gpus", "Standard_D4s_v5", "families NC"}},
		{"a pool with GPUs", func(p *emulated.Pool, h *home) {
			p.VMSize, h.config.GPUs = "Standard_NCC40ads_H100_v5", GPUs{"nvidia.com/gpu", 1}
			h.config.NodeResources = corev1.ResourceList{"cpu": resource.MustParse("40"), "memory": resource.MustParse("320Gi")}
		}, nil},
		{"a pool that lets no SSH in", func(p *emulated.Pool, _ *home) { p.SSH = false }, []string{"ssh.enabled", "inbound NAT pool"}},
		{"no right to tasks", func(_ *emulated.Pool, h *home) { h.cloud.Deny("DeleteTask") }, []string{"delete task", "the role of its README"}},
		{"no right to blobs", func(_ *emulated.Pool, h *home) { h.cloud.Deny("PutBlob") }, []string{"Storage Blob Data Contributor"}},
		{"a wrong secret", func(_ *emulated.Pool, h *home) { h.config.Credentials.ClientSecret = config.Literal("canary-wrong") }, []string{"the secret of the service principal is wrong"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, aPool(), 1, newStill())
			if c.seed != nil {
				c.seed(&h.cloud.Pool, h)
			}
			err := h.open().kit.Examine(t.Context())
			if len(c.wants) == 0 && err != nil {
				t.Errorf("nothing is wrong, and it says: %v", err)
			}
			for _, want := range c.wants {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
					t.Errorf("it says: %v; want %q", err, want)
				}
			}
			if names := h.cloud.Store.Names("vk-"); len(names) > 0 {
				t.Errorf("it has left %v", names)
			}
		})
	}
}

// TestLoginThatFailsIsNoAnswerAboutPods: Microsoft Entra responds with 404 for a deleted tenant, and a proxy may respond with 404, too. No pod or
// blob counts as gone.
func TestLoginThatFailsIsNoAnswerAboutPods(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"error":"invalid_tenant","error_description":"AADSTS90002: Tenant 'tenant-1' not found. Trace ID: 1"}`, `<html>not found</html>`} {
		h := newHome(t, aPool(), 1, newStill())
		pod := h.Pod("default", "web", program.Program{})
		h.cloud.front.Break(emulator.Fault{Operations: []string{"Token"}, Answer: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, text)
		}})
		d := h.open()
		_, listed := d.List(t.Context())
		_, _, found := d.Find(t.Context(), pod)
		for what, err := range map[string]error{
			"list": listed, "find": found, "remove": d.Remove(t.Context(), string(pod.UID)), "order": d.orderStop(t.Context(), pod.UID, time.Now()),
			"read": d.pods.Read(t.Context(), d.hasTask), "delete blobs": d.pods.Blobs.DeleteBatch(t.Context(), []string{"a"}), "examine": d.kit.Examine(t.Context()),
		} {
			if err == nil || errdefs.IsNotFound(err) || azlogin.StatusOf(err) != 0 {
				t.Errorf("%s, with %s: got %v, of the kind not-found: %t, as an answer of the service: %d", what, text, err, errdefs.IsNotFound(err), azlogin.StatusOf(err))
			}
		}
	}
}

// TestContainerPoolRefused: on a pool with a containerConfiguration, the node does not start, and no pod is created.
func TestContainerPoolRefused(t *testing.T) {
	t.Parallel()
	pool := aPool()
	pool.Containers = true
	h := newHome(t, pool, 0, newStill())
	file := filepath.Join(t.TempDir(), "batch.yaml")
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nendpoint: %s\npool: pods\nclusterName: home\nstorage: {containerURL: %s, identity: %s}\ncloud: {authority: %s, scope: %s, caFile: %s}\n"+
		"credentials: {tenantID: %s, clientID: %s, clientSecret: %s}\n", APIVersion, Kind, h.cloud.url, h.config.Storage.ContainerURL, poolIdentity, h.cloud.url, emulated.Batch, h.cloud.ca,
		tenant, clientID, clientSecret)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	in := h.Input()
	in.ConfigPath = file
	if _, err := Provider().New(t.Context(), in); err == nil || !strings.Contains(err.Error(), "containerConfiguration") {
		t.Errorf("the start says: %v", err)
	}
	d, _ := h.start()
	err := d.kit.CreatePod(t.Context(), h.Pod("default", "p", program.Program{}))
	if err == nil || !strings.Contains(err.Error(), "containerConfiguration") || errdefs.IsInvalidInput(err) {
		t.Errorf("a create says: %v; want an error that another pool mends", err)
	}
	if len(h.cloud.front.Requests("CreateTask", "CreateJob")) > 0 {
		t.Error("something was made")
	}
	h.cloud.Server.Pool.Containers = false
	if _, err := Provider().New(t.Context(), in); err != nil {
		t.Errorf("without it, the start says: %v", err)
	}
}
