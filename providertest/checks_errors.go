// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// failures are checks of the errors of a provider.
var failures = []Check{
	{
		Name: "errors/said-once", Why: "the node says which call failed for which pod, in events and statuses: an error that says it again is read twice",
		Run: func(c *C) {
			pod := c.newPod("runs", stayingProgram())
			c.startPod(pod)
			c.errorsSayOnce(pod)
			other := pod.DeepCopy()
			other.UID = c.newPod("other", stayingProgram()).UID
			c.objects.add(other) // a backend may keep both
			c.saysOnce("create", other, c.tryCreate(c.ctx, other))
			if c.backend.Outage == nil {
				return
			}
			c.backend.Outage(true)
			c.addCleanup(func() { c.backend.Outage(false) })
			fresh := c.newPod("fresh", stayingProgram())
			c.objects.add(fresh) // the pod may be created nevertheless
			c.saysOnce("create", fresh, c.tryCreate(c.ctx, fresh))
			c.saysOnce("update", pod, c.updateLabel(pod))
			c.saysOnce("delete", pod, c.tryDelete(pod, 0))
			c.backend.Outage(false)
		},
	},
	{
		Name: "errors/update-absent", Why: "a change that no pod got is not a change that went well: the node looks then whether the pod is lost",
		Run: func(c *C) {
			pod := c.newPod("absent", stayingProgram())
			if err := c.updateLabel(pod); !errdefs.IsNotFound(err) {
				c.Errorf("UpdatePod of a pod that is not there: got %v, want an error of the kind not-found", err)
			}
			next := c.newPod("web-0", stayingProgram())
			c.startPod(next)
			old := c.newPod("web-0", stayingProgram())
			if err := c.updateLabel(old); !errdefs.IsNotFound(err) {
				c.Errorf("UpdatePod of another UID than that of the pod with this name: got %v, want an error of the kind not-found", err)
			}
		},
	},
	{
		Name: "errors/no-such-request", Why: "kubectl shows why a service does not have a request with the answer 400; 404 says that the pod is gone, and 500 that something is broken",
		Run: func(c *C) {
			p := c.openProvider().provider
			pod := c.newPod("asked", stayingProgram())
			c.startPod(pod)
			if a, ok := p.(attacher); ok {
				c.refusedWell("AttachToContainer", func(ctx context.Context) error {
					return a.AttachToContainer(ctx, c.ns, pod.Name, "main", plainIO(nil))
				})
			}
			if e, ok := p.(execer); ok && c.h.Command != nil {
				command := c.execCommand(program.Program{})
				c.refusedWell("RunInContainer", func(ctx context.Context) error {
					return e.RunInContainer(ctx, c.ns, pod.Name, "main", command, plainIO(nil))
				})
			}
			if l, ok := p.(logger); ok {
				c.refusedWell("GetContainerLogs", func(ctx context.Context) error {
					log, err := l.GetContainerLogs(ctx, c.ns, pod.Name, "main", api.ContainerLogOpts{})
					if err == nil {
						err = log.Close()
					}
					return err
				})
			}
		},
	},
	{
		Name: "errors/no-port-forward", Why: "what holds for the other requests that a service does not have holds for this one",
		Run: func(c *C) {
			f, port := c.requirePortForward(), c.unusedPort()
			pod := c.newPod("asked", program.Program{Listen: port, Stay: program.Forever})
			c.startPod(pod)
			c.awaitCondition("PortForward to a port on which the pod listens to have or to refuse it as invalid-input", func() (bool, string) {
				err := c.awaitAnswer("PortForward", func(ctx context.Context) error {
					ours, theirs := net.Pipe()
					defer ours.Close()
					return f.PortForward(ctx, c.ns, pod.Name, port, theirs)
				})
				return err == nil || errdefs.IsInvalidInput(err), fmt.Sprint(err) // the server may not listen yet
			})
		},
	},
}

// refusedWell checks the error of an unsupported request about a running container.
func (c *C) refusedWell(what string, request func(ctx context.Context) error) {
	if err := c.awaitAnswer(what, request); err != nil && !errdefs.IsInvalidInput(err) {
		c.Errorf("%s of a container that runs is refused with %v, want an error of the kind invalid-input", what, err)
	}
}

// awaitAnswer returns the error of a request. A request that lasts longer than a tick is abandoned, and counts as supported.
func (c *C) awaitAnswer(what string, request func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- request(ctx) }()
	over, stop := context.WithTimeout(ctx, c.h.Tick)
	defer stop()
	select {
	case err := <-ended:
		return err
	case <-over.Done():
		cancel()
		c.awaitReturn(what, ended)
		return nil
	}
}

// updateLabel calls UpdatePod with a changed label.
func (c *C) updateLabel(pod *corev1.Pod) error {
	changed := pod.DeepCopy()
	changed.Labels["app"] = "changed"
	if seen := c.currentPod(c.ctx, pod); seen != nil {
		changed.Status = seen.Status
	}
	return c.openProvider().provider.UpdatePod(c.ctx, changed)
}

// errorsSayOnce checks errors about absent pods: an unknown pod, and a pod that has only the name of an existing one.
func (c *C) errorsSayOnce(pod *corev1.Pod) {
	for _, absent := range []*corev1.Pod{c.newPod("absent", stayingProgram()), c.newPod(pod.Name, stayingProgram())} {
		c.saysOnce("update", absent, c.updateLabel(absent))
		c.saysOnce("delete", absent, c.tryDelete(absent, 0))
	}
}

// saysOnce checks that an error does not repeat the prefix that the node adds.
func (c *C) saysOnce(verb string, pod *corev1.Pod, err error) {
	if err == nil || errors.Is(err, c.ctx.Err()) && c.ctx.Err() != nil {
		return
	}
	for _, name := range []string{pod.Namespace + "/" + pod.Name, pod.Name, "'" + pod.Name + "'", `"` + pod.Name + `"`} {
		if said := verb + " pod " + name; strings.Contains(err.Error(), said+":") || strings.Contains(err.Error(), said+" ") {
			c.Errorf("the error of a failed %s of pod %s/%s is %q: the node says %q before it", verb, pod.Namespace, pod.Name, err, said)
			return
		}
	}
}
