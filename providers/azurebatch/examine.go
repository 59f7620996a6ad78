// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/batch/azbatch"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// nobody is a name without a task or a blob, for checks of permissions.
const nobody = "vk-doctor"

// Examine implements service.Examiner. It reads the pool, and checks each permission with a task and a blob that do not exist.
func (d *driver) Examine(ctx context.Context) error {
	problems := []error{d.examinePool(ctx)}
	problem := func(err error) {
		if err != nil && !errdefs.IsNotFound(err) {
			problems = append(problems, err)
		}
	}
	_, err := d.client.listTasks(ctx, d.job)
	problem(err)
	problem(d.client.deleteTask(ctx, d.job, nobody))
	problem(d.pods.Blobs.Put(ctx, d.job+"/"+nobody, nil, nil, false))
	problem(d.pods.Blobs.DeleteBatch(ctx, []string{d.job + "/" + nobody}))
	return errors.Join(problems...)
}

// withGPUs matches the machine sizes with GPUs. Source: "GPU accelerated virtual machine sizes" of Azure's documentation, read 2026-11-28.
var withGPUs = regexp.MustCompile(`(?i)^Standard_N[CDGV][A-Z]*\d`)

func (d *driver) examinePool(ctx context.Context) error {
	m, err := d.poolMachines(ctx)
	if err != nil {
		return err
	}
	p, err := d.client.readPool(ctx, d.config.Pool)
	switch {
	case err != nil:
		return err
	case p.Identity == nil || !slices.ContainsFunc(p.Identity.UserAssignedIdentities, func(i azbatch.UserAssignedIdentity) bool {
		return strings.EqualFold(valueOf(i.ResourceID), d.config.Storage.Identity)
	}):
		return fmt.Errorf("pool %s does not have the identity of storage.identity: make the pool with it", d.config.Pool)
	case m.each.milliCPU == 0 || m.each.memory == 0:
		return fmt.Errorf("the machines of pool %s are %s, whose size is unknown: set nodeResources", d.config.Pool, m.vmSize)
	case d.config.GPUs.Resource != "" && !withGPUs.MatchString(m.vmSize):
		return fmt.Errorf("gpus: the machines of pool %s are %s, which have no GPUs: make a pool of a size of the families NC, ND, NG or NV", d.config.Pool, m.vmSize)
	case valueOf(p.EnableAutoScale) && d.config.MaxNodes == 0:
		return fmt.Errorf("pool %s scales by itself: set maxNodes", d.config.Pool)
	case m.most == 0:
		return fmt.Errorf("pool %s has no machines, and is to have none: give it some, or set maxNodes", d.config.Pool)
	case d.config.SSH.Enabled && !letsIn(p):
		return fmt.Errorf("ssh.enabled: pool %s has no inbound NAT pool for the port 22 of its machines: make it with one", d.config.Pool)
	case p.State != nil && *p.State != azbatch.PoolStateActive:
		return fmt.Errorf("pool %s is %s", d.config.Pool, *p.State)
	}
	return nil
}

// letsIn reports whether the network of a pool allows SSH to its machines.
func letsIn(p azbatch.Pool) bool {
	n := p.NetworkConfiguration
	return n != nil && n.EndpointConfiguration != nil && slices.ContainsFunc(n.EndpointConfiguration.InboundNATPools, func(i azbatch.InboundNATPool) bool {
		return valueOf(i.BackendPort) == 22
	})
}
