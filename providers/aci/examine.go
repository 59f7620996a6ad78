// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// nobody is the name of no group: rights are found out with it, as the resource manager looks at them first.
const nobody = "vk-doctor"

// Examine implements cli.Examiner. It lists, tries each right on a group that is not there, asks for one that cannot be made, so that the
// resource manager looks at the region and the subnet, and looks at the subnet and the quota.
func (p *provider) Examine(ctx context.Context) error {
	groups, _, err := p.client.list(ctx)
	if err != nil {
		return p.place(err)
	}
	for _, g := range groups {
		_, ours := podOf(p.owner, g)
		if location := value(g.Location); ours && location != "" && location != p.config.Region {
			return fmt.Errorf("container group %s of this node is in %s, and region is %s: remove the pods first, or correct region", value(g.Name), location, p.config.Region)
		}
	}
	var problems []error
	problem := func(err error) {
		if err != nil && !errdefs.IsNotFound(err) {
			problems = append(problems, err)
		}
	}
	_, err = p.client.get(ctx, nobody)
	problem(err)
	problem(p.client.delete(ctx, nobody))
	_, err = p.client.logs(ctx, nobody, "none", 1)
	problem(err)
	_, err = p.client.exec(ctx, nobody, "none", aci.ContainerExecRequest{Command: new(shell)})
	problem(err)
	problem(p.refusedCreate(ctx))
	if p.config.Network.Subnet != "" {
		problems = append(problems, p.delegated(ctx))
	}
	problems = append(problems, p.quota(ctx, len(groups)))
	if p.config.Stats {
		_, err = p.monitor.batch(ctx, []string{nobody}, p.started)
		problem(err)
	}
	return errors.Join(problems...)
}

// refusedCreate asks for a group without containers, which ACI refuses after the resource manager has looked at the right, the region, and the
// right on the subnet. Should it be made all the same, it is taken away.
func (p *provider) refusedCreate(ctx context.Context) error {
	out := &aci.ContainerGroupPropertiesProperties{OSType: new(aci.OperatingSystemTypesLinux), Containers: []*aci.Container{}}
	if subnet := p.config.Network.id(); subnet != "" {
		out.SubnetIDs = []*aci.ContainerGroupSubnetID{{ID: &subnet}}
	}
	_, err := p.client.create(ctx, nobody, &aci.ContainerGroup{Location: &p.config.Region, Properties: out})
	var said refused
	switch {
	case err == nil:
		return p.client.delete(ctx, nobody)
	case errors.As(err, &said) && said.status == http.StatusBadRequest && advice[said.code] == "":
		return nil // as it was meant to be: the group cannot be, and all that comes before is right
	}
	return err
}

// delegated looks at the subnet.
func (p *provider) delegated(ctx context.Context) error {
	subnet, err := p.client.subnet(ctx, p.config.Network.id())
	switch {
	case errdefs.IsNotFound(err):
		return fmt.Errorf("%w: look at network.vnet, network.subnet and network.resourceGroup", err)
	case err != nil:
		return err
	}
	for _, d := range subnet.Properties.Delegations {
		if strings.EqualFold(d.Properties.ServiceName, "Microsoft.ContainerInstance/containerGroups") {
			return nil
		}
	}
	return fmt.Errorf("subnet %s is not delegated: run: az network vnet subnet update --resource-group %s --vnet-name %s --name %s --delegations Microsoft.ContainerInstance/containerGroups",
		p.config.Network.Subnet, p.config.Network.ResourceGroup, p.config.Network.VNet, p.config.Network.Subnet)
}

// quota looks at how many groups there may be. Who may not see it hears of it when a pod is refused.
func (p *provider) quota(ctx context.Context, has int) error {
	left, limit, err := p.client.quota(ctx, p.config.Region)
	switch {
	case forbidden(err):
		return nil
	case err != nil:
		return err
	case left <= 0:
		return fmt.Errorf("the quota of %d container groups in %s is used up: raise it in the portal, or remove groups", limit, p.config.Region)
	case p.config.Capacity.Pods.Value() > int64(left+has) && !p.config.Capacity.isDefault():
		return fmt.Errorf("capacity.pods is %d, and the quota in %s has room for %d: raise it in the portal, or lower capacity", p.config.Capacity.Pods.Value(), p.config.Region, left+has)
	}
	return nil
}

// place says what to do about an endpoint that does not answer. It goes by the text: the SDK lets go of the causes of a login that failed.
func (p *provider) place(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "no such host"):
		return fmt.Errorf("%w: look at cloud, and at the DNS of this machine", err)
	case strings.Contains(text, "x509: "):
		return fmt.Errorf("%w: look at cloud.caFile, and at what is between this machine and Azure", err)
	case strings.Contains(text, "connection refused"), strings.Contains(text, "i/o timeout"):
		return fmt.Errorf("%w: look at cloud, and at what is between this machine and Azure", err)
	}
	return err
}

// subnetAnswer is what is read of one.
type subnetAnswer struct {
	Properties struct {
		Delegations []struct {
			Properties struct{ ServiceName string }
		}
	}
}

// subnet returns how a subnet is set up.
func (c *client) subnet(ctx context.Context, id string) (out subnetAnswer, err error) {
	what := "look at the subnet"
	r, err := runtime.NewRequest(ctx, http.MethodGet, runtime.JoinPaths(c.arm.Endpoint(), id))
	if err != nil {
		return out, err
	}
	q := r.Raw().URL.Query()
	q.Set("api-version", "2023-09-01")
	r.Raw().URL.RawQuery = q.Encode()
	answer, err := c.arm.Pipeline().Do(r)
	if err != nil {
		return out, explain(what, err)
	}
	defer answer.Body.Close()
	if !runtime.HasStatusCode(answer, http.StatusOK) {
		return out, explain(what, runtime.NewResponseError(answer))
	}
	return out, runtime.UnmarshalAsJSON(answer, &out)
}

// quota is how many groups a region has room for.
func (c *client) quota(ctx context.Context, region string) (left, limit int, err error) {
	pager := c.location.NewListUsagePager(region, nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return 0, 0, explain("look at the quota", err)
		}
		for _, u := range page.Value {
			if u.Name != nil && value(u.Name.Value) == "ContainerGroups" {
				return int(value(u.Limit) - value(u.CurrentValue)), int(value(u.Limit)), nil
			}
		}
	}
	return 1, 1, nil // it is not said
}
