// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"io"
	"net"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// forwarder and statistician are the parts of nodeutil.Provider for these checks.
type forwarder interface {
	PortForward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error
}

type statistician interface {
	GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error)
}

func (c *C) requirePortForward() forwarder {
	f, ok := c.openProvider().provider.(forwarder)
	if !ok {
		c.Skipf("the provider has no PortForward")
	}
	return f
}

var streams = []Check{
	{
		Name: "attach/output", Why: "kubectl attach shows what the main process prints from now on",
		Run: func(c *C) {
			a, ok := c.openProvider().provider.(attacher)
			if !ok {
				c.Skipf("the provider has no AttachToContainer")
			}
			c.needsPrint()
			pod := c.newPod("attach", program.Program{Tick: c.h.Tick, Stay: program.Forever})
			c.startPod(pod)
			caller := plainIO(nil)
			ctx, cancel := context.WithCancel(c.ctx)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- a.AttachToContainer(ctx, c.ns, pod.Name, "main", caller) }()
			c.untilShown(caller, "tick ", ended)
			cancel()
			c.awaitReturn("an attach whose caller went away", ended)
		},
	},
	{
		Name: "attach/stdin", Why: "what is typed reaches the main process, as with docker attach",
		Needs: []capability.Feature{capability.InteractiveContainers},
		Run: func(c *C) {
			a, ok := c.openProvider().provider.(attacher)
			if !ok {
				c.Skipf("the provider has no AttachToContainer")
			}
			c.needsPrint()
			pod := c.newPod("typed", program.Program{Echo: true, Stay: program.Forever})
			pod.Spec.Containers[0].Stdin = true
			c.startPod(pod)
			in, typed := io.Pipe()
			defer typed.Close()
			caller := plainIO(in)
			ended := make(chan error, 1)
			go func() { ended <- a.AttachToContainer(c.ctx, c.ns, pod.Name, "main", caller) }()
			go func() { _, _ = typed.Write([]byte("hello\n")) }() // ends with the pipe
			c.untilShown(caller, "hello", ended)
			c.removePod(pod, 0)
			typed.Close()
			c.awaitReturn("an attach whose container ended", ended)
		},
	},
	{
		Name: "port-forward/both-ways", Why: "kubectl port-forward is a connection to the port of the pod",
		Run: func(c *C) {
			f, port := c.requirePortForward(), c.unusedPort()
			pod := c.newPod("forward", program.Program{Listen: port, Stay: program.Forever})
			c.startPod(pod)
			var got string
			c.awaitCondition("an answer through the port", func() (bool, string) {
				mine, theirs := net.Pipe()
				ended := make(chan error, 1)
				go func() {
					err := f.PortForward(c.ctx, c.ns, pod.Name, port, theirs)
					theirs.Close()
					ended <- err
				}()
				answer := make([]byte, 5)
				_, err := mine.Write([]byte("hello"))
				if err == nil {
					_, err = io.ReadFull(mine, answer)
				}
				got = string(answer)
				mine.Close()
				c.awaitReturn("a connection that the caller closed", ended)
				if err != nil {
					return false, err.Error()
				}
				return true, ""
			})
			if got != "hello" {
				c.Errorf("the port answers %q, want what was sent, hello", got)
			}
		},
	},
	{
		Name: "port-forward/refused", Why: "a port on which nobody listens is an error, not a connection that hangs",
		Run: func(c *C) {
			f := c.requirePortForward()
			pod, port := c.newPod("refused", stayingProgram()), c.unusedPort()
			c.startPod(pod)
			mine, theirs := net.Pipe()
			defer mine.Close()
			ended := make(chan error, 1)
			go func() {
				err := f.PortForward(c.ctx, c.ns, pod.Name, port, theirs)
				theirs.Close()
				if err == nil {
					c.Errorf("PortForward to a port on which nobody listens: got no error")
				}
				ended <- err
			}()
			c.awaitReturn("PortForward to a port on which nobody listens", ended)
		},
	},
	{
		Name: "port-forward/absent", Why: "404 says that the pod is gone",
		Run: func(c *C) {
			f := c.requirePortForward()
			mine, theirs := net.Pipe()
			defer mine.Close()
			defer theirs.Close()
			if err := f.PortForward(c.ctx, c.ns, "absent", 80, theirs); !errdefs.IsNotFound(err) {
				c.Errorf("PortForward to a pod that is not there: got %v, want an error of the kind not-found", err)
			}
		},
	},
}

var usage = []Check{
	{
		Name: "stats/summary", Why: "kubectl top, autoscalers and eviction read what pods use",
		Run: func(c *C) {
			s, ok := c.openProvider().provider.(statistician)
			if !ok {
				c.Skipf("the provider has no GetStatsSummary")
			}
			pod := c.newPod("stats", stayingProgram())
			c.startPod(pod)
			c.awaitCondition("the pod to be in the summary", func() (bool, string) {
				summary, err := s.GetStatsSummary(c.ctx)
				if err != nil || summary == nil {
					return false, "GetStatsSummary: " + errorText(err)
				}
				for i := range summary.Pods {
					p := &summary.Pods[i]
					if p.PodRef.UID == string(pod.UID) && p.PodRef.Name == pod.Name && p.PodRef.Namespace == c.ns {
						return len(p.Containers) == 1 && p.Containers[0].Name == "main", "it lacks the container"
					}
				}
				return false, "it lacks the pod"
			})
		},
	},
	{
		Name: "stats/ended", Why: "what has ended uses nothing, and must not be counted",
		Run: func(c *C) {
			s, ok := c.openProvider().provider.(statistician)
			if !ok {
				c.Skipf("the provider has no GetStatsSummary")
			}
			pod := c.newPod("stats-ended", stayingProgram())
			c.startPod(pod)
			c.removePod(pod, 0)
			c.awaitCondition("the pod to leave the summary", func() (bool, string) {
				summary, err := s.GetStatsSummary(c.ctx)
				if err != nil {
					return false, err.Error()
				}
				for i := range summary.Pods {
					if summary.Pods[i].PodRef.UID == string(pod.UID) {
						return false, "it is there"
					}
				}
				return true, ""
			})
		},
	},
}

func errorText(err error) string {
	if err == nil {
		return "nil"
	}
	return err.Error()
}
