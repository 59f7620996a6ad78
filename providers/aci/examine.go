// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

// nobody is the name of a group that does not exist. It serves to test rights, because the resource manager checks rights first.
const nobody = "vk-doctor"

// Examine implements service.Examiner. It lists groups, and tries each right on a group that does not exist. It
// asks for a group that cannot be made, so that the resource manager checks the region and the subnet. It also
// checks the subnet and the quota.
func (d *driver) Examine(ctx context.Context) error {
	groups, _, err := d.client.list(ctx)
	if err != nil {
		return azlogin.Unreached(err)
	}
	for _, g := range groups {
		_, ours := podOf(d.groups.owner, g)
		if location := value(g.Location); ours && location != "" && location != d.config.Region {
			return fmt.Errorf("container group %s of this node is in %s, and region is %s: remove the pods first, or correct region", value(g.Name), location, d.config.Region)
		}
	}
	var problems []error
	problem := func(err error) {
		if err != nil && !errdefs.IsNotFound(err) {
			problems = append(problems, err)
		}
	}
	_, err = d.client.get(ctx, nobody)
	problem(err)
	problem(d.client.delete(ctx, nobody))
	problem(d.client.stop(ctx, nobody))
	problem(d.client.restart(ctx, nobody))
	_, err = d.client.logs(ctx, nobody, "none", 1)
	problem(err)
	_, err = d.client.exec(ctx, nobody, "none", aci.ContainerExecRequest{Command: new(shell)})
	problem(err)
	problem(d.refusedCreate(ctx))
	if d.config.Network.Subnet != "" {
		problems = append(problems, d.delegated(ctx))
	}
	problems = append(problems, d.quota(ctx, len(groups)))
	if d.config.Stats {
		_, err = d.monitor.batch(ctx, []string{nobody}, time.Now())
		problem(err)
	}
	return errors.Join(problems...)
}

// refusedCreate asks for a group without containers. ACI refuses it after the resource manager has checked the right, the region, and
// the right on the subnet. If ACI creates the group anyway, refusedCreate removes it.
func (d *driver) refusedCreate(ctx context.Context) error {
	out := &aci.ContainerGroupPropertiesProperties{OSType: new(aci.OperatingSystemTypesLinux), Containers: []*aci.Container{}}
	if subnet := d.config.Network.id(); subnet != "" {
		out.SubnetIDs = []*aci.ContainerGroupSubnetID{{ID: &subnet}}
	}
	_, err := d.client.create(ctx, nobody, &aci.ContainerGroup{Location: &d.config.Region, Properties: out})
	switch {
	case err == nil:
		return d.client.delete(ctx, nobody)
	case azlogin.StatusOf(err) == http.StatusBadRequest && advice[azlogin.CodeOf(err)] == "":
		return nil // the expected refusal: the group cannot exist, and all earlier checks passed
	}
	return err
}

// delegated checks that the subnet exists and is delegated to ACI.
func (d *driver) delegated(ctx context.Context) error {
	subnet, err := d.client.subnet(ctx, d.config.Network.id())
	switch {
	case errdefs.IsNotFound(err):
		return fmt.Errorf("%w: look at network.vnet, network.subnet and network.resourceGroup", err)
	case err != nil:
		return err
	}
	for _, to := range subnet.Properties.Delegations {
		if strings.EqualFold(to.Properties.ServiceName, "Microsoft.ContainerInstance/containerGroups") {
			return nil
		}
	}
	return fmt.Errorf("subnet %s is not delegated: run: az network vnet subnet update --resource-group %s --vnet-name %s --name %s --delegations Microsoft.ContainerInstance/containerGroups",
		d.config.Network.Subnet, d.config.Network.ResourceGroup, d.config.Network.VNet, d.config.Network.Subnet)
}

// quota checks the quota of groups. Without the right to read the quota, it reports no problem.
func (d *driver) quota(ctx context.Context, has int) error {
	left, limit, err := d.client.quota(ctx, d.config.Region)
	switch {
	case azlogin.StatusOf(err) == http.StatusForbidden:
		return nil
	case err != nil:
		return err
	case left <= 0:
		return fmt.Errorf("the quota of %d container groups in %s is used up: raise it in the portal, or remove groups", limit, d.config.Region)
	case d.config.Capacity.Pods.Value() > int64(left+has) && !d.config.Capacity.isDefault():
		return fmt.Errorf("capacity.pods is %d, and the quota in %s has room for %d: raise it in the portal, or lower capacity", d.config.Capacity.Pods.Value(), d.config.Region, left+has)
	}
	return nil
}
