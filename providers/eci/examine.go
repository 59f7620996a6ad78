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

// nobody is the ID of no group. Rights are found out with it: without them ECI forbids before it looks.
const nobody = "eci-00000000000000000000"

// Examine implements cli.Examiner. It makes one list, tries each right on a group that is not there, and lets ECI look at the create of a pod
// without doing it.
func (p *provider) Examine(ctx context.Context) error {
	if err := p.place(p.client.call(ctx, "DescribeContainerGroupStatus", listRequest{Limit: 1}, &statusAnswer{})); err != nil {
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
		{"DeleteContainerGroup", deleteRequest{ContainerGroupID: nobody}},
	} {
		if err := p.client.call(ctx, right.action, right.request, nil); err != nil && !errdefs.IsNotFound(err) {
			problems = append(problems, err)
		}
	}
	return errors.Join(append(problems, p.dryRun(ctx))...)
}

// dryRun asks whether a pod could be created: the switches, the security group, the quota and the right.
func (p *provider) dryRun(ctx context.Context) error {
	request := createRequest{
		ContainerGroupName: "vk-doctor", DryRun: true, SecurityGroupID: p.config.SecurityGroupID, VSwitchID: strings.Join(p.config.VSwitchIDs, ","),
		ResourceGroupID: p.config.ResourceGroupID, CPU: 0.25, Memory: 0.5, RestartPolicy: "Never", Container: []container{{Name: "none", Image: "none"}},
	}
	var answer createAnswer
	err := p.client.call(ctx, "CreateContainerGroup", request, &answer)
	var said *apiError
	if errors.As(err, &said) && strings.HasPrefix(said.Code, "DryRun") {
		return nil // ECI would do it
	}
	if err == nil && answer.ContainerGroupID != "" { // it was done all the same
		return p.client.call(ctx, "DeleteContainerGroup", deleteRequest{ContainerGroupID: answer.ContainerGroupID}, nil)
	}
	return err
}

// place says what to do about an endpoint that is none.
func (p *provider) place(err error) error {
	var unknown *net.DNSError
	var said *apiError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: nothing is called %s: look at region %q and endpoint, and at the DNS of this machine", err, unknown.Name, p.config.Region)
	case errors.As(err, &said):
		return err
	}
	var stranger x509.UnknownAuthorityError
	if errors.As(err, &stranger) {
		return fmt.Errorf("%w: look at caFile, and at what is between this machine and %s", err, p.config.Endpoint)
	}
	var refused *net.OpError
	if errors.As(err, &refused) {
		return fmt.Errorf("%w: look at endpoint, and at what is between this machine and %s", err, p.config.Endpoint)
	}
	return err
}
