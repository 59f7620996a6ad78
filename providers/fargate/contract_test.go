// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/ecs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

const logGroup = "/vk/home"

// quick has short intervals for tests.
var quick = service.Config{Busy: 100 * time.Millisecond, Rest: 300 * time.Millisecond, Idle: 300 * time.Millisecond, SeenWithin: 2 * time.Second}

// TestContract runs the contract of providers on an emulator of ECS whose containers are goroutines.
func TestContract(t *testing.T) {
	useKey(t)
	providertest.Run(t, providertest.Harness{
		Backend: func(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
			return newCloud(ctx).backend(env)
		},
		Container: func(_ *corev1.Pod, k *corev1.Container, p program.Program) error {
			k.Image, k.Args = "program", p.Args()
			return nil
		},
		Command:  func(p program.Program) ([]string, error) { return append([]string{"program"}, p.Args()...), nil },
		Patience: time.Minute, Every: 50 * time.Millisecond, Tick: time.Second, Parallel: 16,
		Subject:  providertest.Subject{Provider: "fargate", Backend: "an emulator of ECS, CloudWatch Logs and Secrets Manager, whose containers are goroutines"},
		Unproven: unproven(), Except: exceptions(),
	})
}

// These keys are known to the emulator.
const (
	testKey    = "AKIDEXAMPLE"
	testSecret = "example-secret-of-tests"
)

// useKey makes clients of the test use the key of the emulator.
func useKey(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", testKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	t.Setenv("AWS_SESSION_TOKEN", "")
	t.Setenv("AWS_CONFIG_FILE", "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
}

// cloud is an emulator with its listener.
type cloud struct {
	*ecs.Server
	containers *inprocess.Cloud
	url        string
	stop       func()
}

func newCloud(ctx context.Context, change ...func(*ecs.Config)) *cloud {
	ctx, cancel := context.WithCancel(ctx)
	c := &cloud{containers: inprocess.New(ctx)}
	runner := newShelled(ctx, c.containers)
	conf := ecs.Config{
		Runner: runner, Objects: &emulator.Objects{}, Keys: map[string]ecs.Key{testKey: {Secret: testSecret}}, LogGroups: []string{logGroup}, Quick: true,
		Lag: 200 * time.Millisecond,
	}
	for _, f := range change {
		f(&conf)
	}
	c.Server = ecs.New(ctx, conf)
	runner.NotifyPods(ctx, func(pod *corev1.Pod) { c.Report(runner.at(pod)) })
	var background sync.WaitGroup
	background.Go(func() { _ = runner.RunInBackground(ctx) })
	server := httptest.NewServer(c)
	c.url = server.URL
	c.stop = func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		background.Wait()
	}
	return c
}

// config returns a configuration for this cloud.
func (c *cloud) config(cluster string) (Config, error) {
	return Config{
		Region: "eu-central-1", Stats: true, Endpoint: c.url, ClusterID: cluster, Subnets: []string{"subnet-1"}, SecurityGroups: []string{"sg-1"},
		ExecutionRole: "arn:aws:iam::123456789012:role/execution", LogGroup: logGroup, ExecProbeEvery: metav1.Duration{Duration: time.Second}, Queue: c.url + "/123456789012/tasks", ExecRole: "arn:aws:iam::123456789012:role/exec",
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20"), corev1.ResourceMemory: resource.MustParse("40Gi"), corev1.ResourcePods: resource.MustParse("200")},
	}.complete()
}

// task returns the ID of the only task of a pod.
func (c *cloud) task(pod *corev1.Pod) (string, error) {
	ids := c.Running(identity.TagUID, string(pod.UID))
	if len(ids) != 1 {
		return "", errors.New("the pod has no task, or several")
	}
	return ids[0], nil
}

func (c *cloud) backend(env providertest.Env) (*providertest.Backend, error) {
	conf, err := c.config("contract")
	if err != nil {
		return nil, err
	}
	var clock aheadBy
	c.Front.Forget()
	return &providertest.Backend{
		Left: func() (map[string][]string, error) {
			clock.forward(2 * sharedFor) // shared things stay for a day
			return c.Left(), nil
		},
		Kept: map[string]providertest.Kept{
			"secrets":     {Most: 1, Rule: "the key of the names of secrets, one for a cluster of Kubernetes"},
			"log streams": {Most: 40, Rule: "logs are read after the end of a pod; the retention of the log group removes them"},
		},
		Open: func(ctx context.Context) (node.PodLifecycleHandler, error) {
			d, err := newDriver(ctx, cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, conf, quick)
			if err != nil {
				return nil, err
			}
			d.sweeper.every, d.sweeper.now = time.Second, clock.now
			return d.kit, nil
		},
		Close: func() error { c.stop(); return nil },
		Instances: func(pod *corev1.Pod) (int, error) {
			return len(c.Running(identity.TagUID, string(pod.UID))), nil
		},
		Kill: func(pod *corev1.Pod, container string) error {
			id, err := c.task(pod)
			if err != nil {
				return err
			}
			return c.containers.Kill(types.UID(id), container)
		},
		Lose: func(pod *corev1.Pod) error {
			id, err := c.task(pod)
			if err != nil {
				return err
			}
			return c.Lose(id)
		},
		Outage:   c.breaks(emulator.Fault{Answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusServiceUnavailable) }}),
		Throttle: c.breaks(emulator.Fault{Answer: ecs.Throttled}),
		Stale:    c.Stale, LoseAnswer: func() { c.Break(emulator.Fault{Operations: []string{"RunTask"}, Times: 1, Lose: true}) },
	}, nil
}

// breaks returns a function that begins or ends a fault.
func (c *cloud) breaks(f emulator.Fault) func(bool) {
	mend := func() {}
	return func(on bool) {
		if mend(); on {
			mend = c.Break(f)
		}
	}
}

// exceptions returns the checks for features that ECS or the goroutines of the emulator do not have.
func exceptions() map[string]string {
	except := map[string]string{}
	for _, name := range []string{"restarts/always", "restarts/last-state", "restarts/on-failure", "restarts/killed", "restarts/count-holds", "reports/restarts", "logs/previous", "starts/backs-off"} {
		except[name] = "ECS starts containers again and does not tell it"
	}
	for _, name := range []string{"settings/capabilities", "settings/limits", "settings/read-only-root", "settings/run-as-user"} {
		except[name] = "the containers of this test are goroutines, which have nothing of it"
	}
	except["exec/output"] = "a session of ECS Exec has one output; TestPolicy shows both streams in it"
	except["probes/liveness"] = "ECS cannot restart a container: its pod fails, as probes/liveness-ends shows"
	except["deletion/grace"] = "ECS gives a container the time that its pod was made with, and none that comes with the deletion"
	except["attach/output"] = "ECS has no such request, and the provider says so"
	return except
}

// unproven returns the features whose fields are only passed on to Fargate.
func unproven() map[capability.Feature]string {
	all := map[capability.Feature]string{}
	for _, f := range []capability.Feature{capability.ContainerLimits, capability.RunAsUser, capability.Capabilities, capability.ReadOnlyRoot} {
		all[f] = "ECS gets the fields, by the tests of the mapping; the containers of this test are goroutines, without what they act on"
	}
	all[capability.TokenVolumes] = "TestSecretsAreNowhereElse has a token in a file"
	all[capability.PersistentVolume] = "ECS gets the file system, by the tests of the mapping; no file system is here"
	all[capability.OtherVolumes] = "ECS gets the file system, by the tests of the mapping; no file system is here"
	return all
}
