// SPDX-License-Identifier: Apache-2.0

// Package fargate runs pods as tasks of Amazon ECS on AWS Fargate.
//
// The guarantee: a pod that Fargate cannot run as written is refused with the path of the field. A missing answer proves nothing: a
// pod is gone only when ECS says so, and its exit codes are those of ECS, or unknown. The value of a secret is never in a task
// definition, a tag or a name.
//
// Note: a task definition does not belong to one pod. Its name is a hash of its content, and pods with
// the same content share it, because ECS allows about one registration a second.
package fargate

import (
	"context"
	_ "embed"
	"sync"

	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/configured"
)

//go:embed README.md
var readme string

// Provider returns the provider fargate.
func Provider() cli.Provider {
	return configured.Provider(cli.Provider{Name: "fargate", Readme: readme, Aliases: []string{"aws"}}, configured.Steps[Config]{
		Load: LoadConfig, Complete: Config.complete, Capabilities: Config.Capabilities,
		New: func(ctx context.Context, in cli.ProviderInput, config Config) (nodeutil.Provider, error) {
			d, err := newDriver(ctx, in, config, service.Config{})
			if err != nil {
				return nil, err
			}
			return advised{d.kit, d}, nil
		},
		Check: func(config Config) func(*corev1.Pod) error { return mapping{config: config}.check },
	})
}

// advised is the provider with advice for the command doctor.
type advised struct {
	*service.Provider[ecstypes.Task]
	driver *driver
}

// Advise implements cli.Adviser. It advises about two things. Docker Hub limits the pulls of an address, and
// many tasks share one address. Logs without a retention stay forever, and cost money.
func (a advised) Advise(ctx context.Context) (versions []string, advice []cli.Advice) {
	c := a.driver.config
	if host := registry(c.FilesImage); host == dockerHub && c.RegistryCredentials[host] == "" {
		advice = append(advice, cli.Advice{
			Problem: "filesImage: " + c.FilesImage + " is on Docker Hub, which limits how often it is pulled without an account, and each pod with a token pulls it",
			Fix:     "leave filesImage out, name an image of another registry, or name a secret of an account in registryCredentials[" + dockerHub + "]",
		})
	}
	if c.LogGroup != "" && a.driver.client.keepsForEver(ctx, c.LogGroup) {
		advice = append(advice, cli.Advice{
			Problem: "logGroup: " + c.LogGroup + " has no retention: the logs of pods stay there for ever, and cost by the month",
			Fix:     "set one, such as by aws logs put-retention-policy --log-group-name " + c.LogGroup + " --retention-in-days 30",
		})
	}
	return nil, advice
}

// Work implements service.Worker.
func (d *driver) Work(ctx context.Context) {
	var beside sync.WaitGroup
	beside.Go(func() { d.sweeps(ctx) })
	if d.config.Queue != "" {
		d.listen(ctx)
	}
	beside.Wait()
}

// Close implements service.Closer.
func (d *driver) Close() { d.client.close() }
