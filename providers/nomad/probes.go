// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// restartPatience bounds the wait for the answer to a restart, which comes after the end of the task.
const restartPatience = 10 * time.Second

// Lacking implements service.Prober. Nomad's checks belong to services, which pods do not make.
func (d *driver) Lacking(_ *corev1.Pod, c *corev1.Container) service.Probes {
	return service.Probes{Startup: c.StartupProbe, Liveness: c.LivenessProbe, Readiness: c.ReadinessProbe}
}

// End implements service.Prober. It stops the job of a pod.
func (d *driver) End(ctx context.Context, of service.Target[*instance], _ string) error {
	d.store.mu.Lock()
	e := d.store.pods[of.Instance.pod.UID]
	d.store.mu.Unlock()
	if e == nil {
		return errdefs.NotFound("Nomad does not have its job")
	}
	return d.stop(ctx, e, time.Now().Add(podspec.Grace(of.Pod)))
}

// Restart implements service.Restarter. Nomad answers after the end of the task. With a short grace period,
// Restart kills the task itself, because a client waits for clientGrace at least.
func (d *driver) Restart(ctx context.Context, of service.Target[*instance], _ string) error {
	grace := specGrace(of.Pod)
	waits, cancel := context.WithTimeout(ctx, min(grace, restartPatience))
	defer cancel()
	err := d.client.restart(waits, of.Instance.alloc.ID, of.Container)
	if err == nil || ctx.Err() != nil || !errors.Is(waits.Err(), context.DeadlineExceeded) {
		return err
	}
	if grace > restartPatience {
		return nil // the client kills the task
	}
	return d.client.signal(ctx, of.Instance.alloc.ID, of.Container, "SIGKILL")
}

// restart asks a client to end a task and start it again. The request is sent only once, because a second
// request would end the next run.
func (c *client) restart(ctx context.Context, alloc, task string) error {
	body, err := json.Marshal(nomadapi.AllocationRestartRequest{TaskName: task})
	if err != nil {
		return err
	}
	_, err = c.once(ctx, http.MethodPut, "/v1/client/allocation/"+alloc+"/restart", nil, body, nil)
	return err
}
