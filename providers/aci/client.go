// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

const (
	// callTimeout is the timeout of a request, including its answer.
	callTimeout = time.Minute
	// maxPages bounds a list: a subscription has fewer groups.
	maxPages = 500
)

// client is a client of ACI for one resource group. The errors of its methods have kinds; see explain.
type client struct {
	group      string
	groups     *aci.ContainerGroupsClient
	containers *aci.ContainersClient
	location   *aci.LocationClient
	arm        *arm.Client
}

// newClient returns a client for a complete configuration.
func newClient(c Config, credential azcore.TokenCredential, http *http.Client) (*client, error) {
	out := &client{group: c.ResourceGroup}
	options := &arm.ClientOptions{
		ClientOptions: policy.ClientOptions{
			Cloud: c.Cloud.sdk(), Transport: http, Telemetry: policy.TelemetryOptions{ApplicationID: "virtual-kubelet-aci"},
			Retry: policy.RetryOptions{MaxRetries: -1}, // the node waits for the time that ACI names
		},
		DisableRPRegistration: true, // registration would need a right that no other request needs
	}
	var errs [4]error
	out.groups, errs[0] = aci.NewContainerGroupsClient(c.SubscriptionID, credential, options)
	out.containers, errs[1] = aci.NewContainersClient(c.SubscriptionID, credential, options)
	out.location, errs[2] = aci.NewLocationClient(c.SubscriptionID, credential, options)
	out.arm, errs[3] = arm.NewClient("virtual-kubelet-aci", "v1.0.0", credential, options)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("aci provider: %w", err)
	}
	return out, nil
}

// sdk converts c to the configuration of the SDK.
func (c Cloud) sdk() cloud.Configuration {
	return cloud.Configuration{
		ActiveDirectoryAuthorityHost: c.Authority,
		Services:                     map[cloud.ServiceName]cloud.ServiceConfiguration{cloud.ResourceManager: {Endpoint: c.Endpoint, Audience: c.Audience}},
	}
}

// create makes a group, and returns it as ACI has accepted it. It does not wait until the group runs: lists show
// that later.
func (c *client) create(ctx context.Context, name string, group *aci.ContainerGroup) (*aci.ContainerGroup, error) {
	var answer *http.Response
	_, err := c.groups.BeginCreateOrUpdate(policy.WithCaptureResponse(ctx, &answer), c.group, name, *group, nil)
	if err != nil {
		return nil, explain("create container group "+name, err)
	}
	made := &aci.ContainerGroup{}
	if err := runtime.UnmarshalAsJSON(answer, made); err != nil {
		return nil, fmt.Errorf("create container group %s: the answer of ACI is not understood: %T", name, errors.Unwrap(err))
	}
	return made, nil
}

// get returns a group with the states of its containers. An error of the kind not-found means that the group
// does not exist.
func (c *client) get(ctx context.Context, name string) (*aci.ContainerGroup, error) {
	answer, err := c.groups.Get(ctx, c.group, name, nil)
	if err != nil {
		return nil, explain("look at container group "+name, err)
	}
	return &answer.ContainerGroup, nil
}

// list returns all groups of the resource group, without the states of their containers.
func (c *client) list(ctx context.Context) (all []*aci.ContainerGroup, pages int, err error) {
	pager := c.groups.NewListByResourceGroupPager(c.group, nil)
	for pager.More() {
		if pages++; pages > maxPages {
			return nil, pages, fmt.Errorf("list container groups: the list has more than %d pages", maxPages)
		}
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, pages, explain("list container groups", err)
		}
		all = append(all, page.Value...)
	}
	return all, pages, nil
}

// delete asks ACI to remove a group. An error of the kind not-found means that the group did not exist.
func (c *client) delete(ctx context.Context, name string) error {
	var answer *http.Response
	_, err := c.groups.BeginDelete(policy.WithCaptureResponse(ctx, &answer), c.group, name, nil)
	if answer != nil && answer.StatusCode == http.StatusNoContent {
		return errdefs.NotFoundf("delete container group %s: ACI does not have it", name)
	}
	return explain("delete container group "+name, err)
}

// stop asks ACI to stop a group without deleting it.
func (c *client) stop(ctx context.Context, name string) error {
	_, err := c.groups.Stop(ctx, c.group, name, nil)
	return explain("stop container group "+name, err)
}

// restart asks ACI to restart all containers of a group. It does not wait until they run: lists show that later.
func (c *client) restart(ctx context.Context, name string) error {
	_, err := c.groups.BeginRestart(ctx, c.group, name, nil)
	var said *azcore.ResponseError
	if err == nil || errors.As(err, &said) && said.StatusCode == http.StatusAccepted { // newer versions of the API answer 202
		return nil
	}
	return explain("restart container group "+name, err)
}

// logs returns the last lines of the log of a container, each with its time.
func (c *client) logs(ctx context.Context, name, container string, tail int32) (string, error) {
	options := &aci.ContainersClientListLogsOptions{Timestamps: new(true)}
	if tail > 0 {
		options.Tail = &tail
	}
	answer, err := c.containers.ListLogs(ctx, c.group, name, container, options)
	return value(answer.Content), explain(fmt.Sprintf("read the log of container %s of group %s", container, name), err)
}

// exec starts a command, and returns the address of its streams.
func (c *client) exec(ctx context.Context, name, container string, request aci.ContainerExecRequest) (aci.ContainerExecResponse, error) {
	answer, err := c.containers.ExecuteCommand(ctx, c.group, name, container, request, nil)
	return answer.ContainerExecResponse, explain(fmt.Sprintf("exec in container %s of group %s", container, name), err)
}

// send makes a request for which the SDK has no method, and decodes the answer into out.
func send(through runtime.Pipeline, r *policy.Request, what string, out any) error {
	answer, err := through.Do(r)
	if err != nil {
		return explain(what, err)
	}
	defer answer.Body.Close()
	if !runtime.HasStatusCode(answer, http.StatusOK) {
		return explain(what, runtime.NewResponseError(answer))
	}
	return runtime.UnmarshalAsJSON(answer, out)
}

// subnetAnswer is the part of a subnet that the provider reads.
type subnetAnswer struct {
	Properties struct {
		Delegations []struct {
			Properties struct{ ServiceName string }
		}
	}
}

// subnet reads a subnet.
func (c *client) subnet(ctx context.Context, id string) (out subnetAnswer, err error) {
	r, err := runtime.NewRequest(ctx, http.MethodGet, runtime.JoinPaths(c.arm.Endpoint(), id))
	if err != nil {
		return out, err
	}
	r.Raw().URL.RawQuery = "api-version=2023-09-01"
	return out, send(c.arm.Pipeline(), r, "look at the subnet", &out)
}

// quota returns how many more groups a region allows, and the limit.
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
	return 1, 1, nil // the answer has no quota of groups
}
