// SPDX-License-Identifier: Apache-2.0

package mock_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/mock"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContract runs the contract of providers in fake time. What is simulated takes the place of the backend: it outlives the
// daemon.
func TestContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := providertest.Verify(t.Context(), providertest.Harness{
			Backend: func(context.Context, providertest.Env) (*providertest.Backend, error) {
				p, err := mock.New(t.Context(), cli.ProviderInput{NodeName: "contract", InternalIP: "192.0.2.1"}, mock.DefaultConfig())
				return &providertest.Backend{Open: func(context.Context) (node.PodLifecycleHandler, error) { return p, nil }}, err
			},
			Container: simulate, Command: simulatedCommand, OwnLog: true, Except: except,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range r.Results {
			switch k.Outcome {
			case providertest.Failed:
				t.Errorf("%s: %s", k.Name, k.Detail)
			case providertest.Skipped:
				t.Logf("%s is skipped: %s", k.Name, k.Detail)
			}
		}
		if n := r.Count(providertest.Passed); n < 40 {
			t.Errorf("%d checks passed, want 40 at least", n)
		}
	})
}

// except are checks of what a simulated pod takes no notice of. The provider declares nothing, so it is asked for all.
var except = map[string]string{
	"creation/init-order":    "init containers are not simulated",
	"creation/init-fails":    "init containers are not simulated",
	"creation/sidecar":       "init containers are not simulated",
	"hooks/pre-stop":         "hooks are not simulated",
	"hooks/grace":            "hooks are not simulated",
	"settings/stop-signal":   "signals are not simulated",
	"settings/ephemeral":     "ephemeral containers are not simulated",
	"settings/restart-rules": "restart rules of containers are not simulated",
	"exec/pod-ends":          "a simulated command goes on until its caller leaves",
}

// simulate lets a pod live as the program says. The life of a pod is that of all its containers.
func simulate(pod *corev1.Pod, c *corev1.Container, p program.Program) error {
	plan := program.Program{Stay: p.Stay, Exit: p.Exit, Deaf: p.Deaf}
	plan.Print, plan.Tick = p.Print, p.Tick // a simulated container writes lines of its own
	if !reflect.DeepEqual(p, plan) {
		return errors.New("simulated containers run nothing: they stay and end")
	}
	c.Image = "simulated"
	annotations := map[string]string{}
	switch {
	case p.Stay == 0:
		annotations[mock.AnnotationRunFor] = "1ms"
	case p.Stay != program.Forever:
		annotations[mock.AnnotationRunFor] = p.Stay.String()
	}
	if p.Exit != 0 {
		annotations[mock.AnnotationExitCode] = fmt.Sprint(p.Exit)
	}
	if p.Deaf {
		annotations[mock.AnnotationDeleteDelay] = time.Hour.String()
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
