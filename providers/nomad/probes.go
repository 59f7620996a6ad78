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
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// restartPatience is how long the answer to a restart is waited for, which comes when the task has ended.
const restartPatience = 10 * time.Second

// Lacking implements service.Prober. The checks of Nomad are those of services, which pods do not make.
func (d *driver) Lacking(_ *corev1.Pod, c *corev1.Container) service.Probes {
	return service.Probes{Startup: c.StartupProbe, Liveness: c.LivenessProbe, Readiness: c.ReadinessProbe}
}

// End implements service.Prober: it stops the job of a pod.
func (d *driver) End(ctx context.Context, of service.Target[*instance], _ string) error {
	d.store.mu.Lock()
	e := d.store.pods[of.Instance.pod.UID]
	d.store.mu.Unlock()
	if e == nil {
		return errdefs.NotFound("Nomad does not have its job")
	}
	return d.stop(ctx, e, time.Now().Add(podspec.Grace(of.Pod)))
}

// Restart implements service.Restarter. Nomad answers when the task has ended. One that does not end within a short grace period is killed here, as a client
// waits for clientGrace at least.
func (d *driver) Restart(ctx context.Context, of service.Target[*instance], _ string) error {
	grace := specGrace(of.Pod)
	waits, cancel := context.WithTimeout(ctx, min(grace, restartPatience))
	defer cancel()
	err := d.client.restart(waits, of.Instance.alloc.ID, of.Container)
	if err == nil || ctx.Err() != nil || !errors.Is(waits.Err(), context.DeadlineExceeded) {
		return err
	}
	if grace > restartPatience {
		return nil // the client kills it
	}
	return d.client.signal(ctx, of.Instance.alloc.ID, of.Container, "SIGKILL")
}

// restart lets a client end a task and start it again. It is asked once: another request would end the next run.
func (c *client) restart(ctx context.Context, alloc, task string) error {
	body, err := json.Marshal(nomadapi.AllocationRestartRequest{TaskName: task})
	if err != nil {
		return err
	}
	_, err = c.once(ctx, http.MethodPut, "/v1/client/allocation/"+alloc+"/restart", nil, body, nil)
	return err
}

// checkProbes refuses the probes of a container that this process cannot do.
func (b taskBuilder) checkProbes(c *corev1.Container, init bool, at *field.Path) error {
	if init && c.StartupProbe != nil {
		return errdefs.InvalidInputf("%s: this node does it, and the containers that start next would not wait for it", at.Child("startupProbe"))
	}
	for _, of := range []struct {
		name  string
		probe *corev1.Probe
	}{{"startupProbe", c.StartupProbe}, {"livenessProbe", c.LivenessProbe}, {"readinessProbe", c.ReadinessProbe}} {
		name, p := of.name, of.probe
		switch {
		case p == nil:
		case p.TerminationGracePeriodSeconds != nil:
			return errdefs.InvalidInputf("%s: Nomad gives a task the time that its pod was made with", at.Child(name, "terminationGracePeriodSeconds"))
		case p.Exec == nil && b.config.Network != NetworkBridge && !b.Pod.Spec.HostNetwork:
			return errdefs.InvalidInputf("%s: the pod has no address to ask, as the pods of this node are in the network of the clients: use exec, or hostNetwork", at.Child(name))
		}
	}
	return nil
}
