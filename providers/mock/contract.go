// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// prepareContract prepares the contract tests to run without images. The simulation takes the place of the backend, so
// the provider outlives the daemon.
func prepareContract(h *providertest.Harness) {
	h.Container, h.Command, h.OwnLog, h.Except = annotatePod, simulatedCommand, true, notSimulated
	h.Subject.Image = ""
	backend := h.Backend
	h.Backend = func(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
		b, err := backend(ctx, env)
		if err != nil {
			return nil, err
		}
		open := b.Open
		once := sync.OnceValues(func() (node.PodLifecycleHandler, error) { return open(ctx) })
		b.Open = func(context.Context) (node.PodLifecycleHandler, error) { return once() }
		b.Left = func() (map[string][]string, error) {
			p, err := once()
			if err != nil {
				return nil, err
			}
			pods, err := p.GetPods(ctx)
			left := map[string][]string{}
			for _, pod := range pods {
				left["pods"] = append(left["pods"], pod.Namespace+"/"+pod.Name)
			}
			return left, err
		}
		return b, nil
	}
}

// notSimulated lists the checks of features that simulated pods ignore. The provider declares no features, so
// the contract asks for all of them.
var notSimulated = map[string]string{
	"creation/init-order":    "init containers are not simulated",
	"creation/init-fails":    "init containers are not simulated",
	"creation/sidecar":       "init containers are not simulated",
	"hooks/pre-stop":         "hooks are not simulated",
	"hooks/grace":            "hooks are not simulated",
	"settings/stop-signal":   "signals are not simulated",
	"starts/not-found":       "commands are not simulated",
	"starts/not-executable":  "commands are not simulated",
	"starts/directory":       "commands are not simulated",
	"starts/backs-off":       "commands are not simulated",
	"settings/ephemeral":     "ephemeral containers are not simulated",
	"settings/restart-rules": "restart rules of containers are not simulated",
}

// annotatePod sets the annotations of a pod to the given program. All containers of a pod share its life.
func annotatePod(pod *corev1.Pod, c *corev1.Container, p program.Program) error {
	plan := program.Program{Stay: p.Stay, Exit: p.Exit, Deaf: p.Deaf}
	plan.Print, plan.Tick = p.Print, p.Tick // a simulated container writes lines of its own
	if !reflect.DeepEqual(p, plan) {
		return errors.New("simulated containers run nothing: they stay and end")
	}
	c.Image = "simulated"
	annotations := map[string]string{}
	switch {
	case p.Stay == 0:
		annotations[AnnotationRunFor] = "1ms"
	case p.Stay != program.Forever:
		annotations[AnnotationRunFor] = p.Stay.String()
	}
	if p.Exit != 0 {
		annotations[AnnotationExitCode] = fmt.Sprint(p.Exit)
	}
	if p.Deaf {
		annotations[AnnotationDeleteDelay] = time.Hour.String()
	}
	for name, value := range annotations {
		if len(pod.Spec.Containers) > 0 && pod.Annotations[name] != value {
			return errors.New("all containers of a simulated pod live the same life")
		}
		pod.Annotations[name] = value
	}
	return nil
}

// simulatedCommand is a script for the shell of simulated containers.
func simulatedCommand(p program.Program) ([]string, error) {
	plan := program.Program{Print: p.Print, Echo: p.Echo, Exit: p.Exit, Stay: p.Stay, Deaf: p.Deaf}
	if !reflect.DeepEqual(p, plan) {
		return nil, errors.New("the simulated shell knows few commands")
	}
	var script []string
	for _, line := range p.Print {
		script = append(script, "echo '"+line+"'")
	}
	if p.Echo {
		script = append(script, "cat")
	}
	if p.Stay != 0 {
		script = append(script, fmt.Sprintf("sleep %d", min(p.Stay, 1000*time.Hour)/time.Second))
	}
	script = append(script, fmt.Sprintf("exit %d", p.Exit))
	return []string{"sh", "-c", strings.Join(script, "; ")}, nil
}
