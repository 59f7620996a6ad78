// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// nobody is the ID of a group that does not exist. It serves to test rights: without a right, ECI denies the request before it looks
// for the group.
const nobody = "eci-00000000000000000000"

// Examine implements service.Examiner. It makes one list, tries each right on a group that does not exist, and
// lets ECI check the create of a pod in a dry run.
func (d *driver) Examine(ctx context.Context) error {
	if err := d.place(d.client.call(ctx, "DescribeContainerGroupStatus", listRequest{Limit: 1}, &statusAnswer{})); err != nil {
		return err
	}
	var problems []error
	for _, right := range []struct {
		action  string
		request any
	}{
		{"DescribeContainerGroups", listRequest{ContainerGroupName: nobody, Limit: 1}},
		{"DescribeContainerLog", logRequest{ContainerGroupID: nobody, ContainerName: "none", Tail: 1}},
		{"ExecContainerCommand", execRequest{ContainerGroupID: nobody, ContainerName: "none", Command: `["true"]`}},
		{"DeleteContainerGroup", groupRequest{ContainerGroupID: nobody}},
		{"RestartContainerGroup", groupRequest{ContainerGroupID: nobody}},
	} {
		if err := d.client.call(ctx, right.action, right.request, nil); err != nil && !errdefs.IsNotFound(err) {
			problems = append(problems, err)
		}
	}
	return errors.Join(append(problems, d.dryRun(ctx))...)
}

// dryRun asks whether a pod could be created: the switches, the security group, the quota and the right.
func (d *driver) dryRun(ctx context.Context) error {
	request := createRequest{
		ContainerGroupName: "vk-doctor", DryRun: true, SecurityGroupID: d.config.SecurityGroupID, VSwitchID: strings.Join(d.config.VSwitchIDs, ","),
		ResourceGroupID: d.config.ResourceGroupID, CPU: 0.25, Memory: 0.5, RestartPolicy: "Never", Container: []container{{Name: "none", Image: "none"}},
	}
	var answer createAnswer
	err := d.client.call(ctx, "CreateContainerGroup", request, &answer)
	var said *apiError
	if errors.As(err, &said) && strings.HasPrefix(said.Code, "DryRun") {
		return nil // ECI would make the group
	}
	if err == nil && answer.ContainerGroupID != "" { // ECI made the group despite the dry run
		return d.client.call(ctx, "DeleteContainerGroup", groupRequest{ContainerGroupID: answer.ContainerGroupID}, nil)
	}
	return err
}

// place adds advice about an endpoint that does not exist.
func (d *driver) place(err error) error {
	var unknown *net.DNSError
	var said *apiError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: nothing is called %s: look at region %q and endpoint, and at the DNS of this machine", err, unknown.Name, d.config.Region)
	case errors.As(err, &said):
		return err
	}
	var stranger x509.UnknownAuthorityError
	if errors.As(err, &stranger) {
		return fmt.Errorf("%w: check caFile, and proxies and firewalls between this machine and %s", err, d.config.Endpoint)
	}
	var refused *net.OpError
	if errors.As(err, &refused) {
		return fmt.Errorf("%w: check endpoint, and proxies and firewalls between this machine and %s", err, d.config.Endpoint)
	}
	return err
}
