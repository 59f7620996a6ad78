// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// TestMoto runs the driver on moto, an emulator of EC2 by others. hack/test-moto.sh starts moto.
func TestMoto(t *testing.T) {
	at := os.Getenv("MOTO_URL")
	if at == "" {
		t.Skip("hack/test-moto.sh gives an address of moto")
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "AK")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "SK")
	d, err := New(t.Context(), Config{Region: "us-east-1", Endpoint: at}, 6421)
	if err != nil {
		t.Fatal(err)
	}
	subnets, err := d.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	if err != nil || len(subnets.Subnets) == 0 {
		t.Fatalf("%+v, %v", subnets, err)
	}
	groups, err := d.ec2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{{Name: aws.String("vpc-id"), Values: []string{*subnets.Subnets[0].VpcId}}}})
	if err != nil || len(groups.SecurityGroups) == 0 {
		t.Fatalf("%+v, %v", groups, err)
	}
	images, err := d.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{})
	if err != nil || len(images.Images) == 0 {
		t.Fatalf("%+v, %v", images, err)
	}
	d.config.SubnetID, d.config.SecurityGroups = *subnets.Subnets[0].SubnetId, []string{*groups.SecurityGroups[0].GroupId}
	var report strings.Builder
	passed := func(ok bool, what string, got ...any) {
		t.Helper()
		if ok {
			fmt.Fprintf(&report, "- %s\n", what)
			return
		}
		t.Errorf("%s: got %+v", what, got)
	}

	mine := map[string]string{"vk-cluster": "home", "vk-node": "a*"}
	of := func(token, node string) machine.Spec {
		s := spec(token)
		s.Image, s.Tags["vk-node"] = *images.Images[0].ImageId, node
		return s
	}
	m, err := d.Start(t.Context(), of("token-1", "a*"))
	if err != nil {
		t.Fatal(err)
	}
	passed(m.ID != "" && m.Type == "t3.nano" && m.IP != "" && m.Address == m.IP+":6421" && m.Tags["vk-token"] == "token-1", "a start returns the instance with its type, address and tags", m)
	if _, err := d.Start(t.Context(), of("token-2", "ab")); err != nil {
		t.Fatal(err)
	}
	all, err := d.List(t.Context(), mine)
	passed(err == nil && len(all) == 1 && all[0].ID == m.ID && all[0].State == machine.Running, "a list has the instances with the tags, and takes `*` in a tag for itself", all, err)
	tagged := []types.Filter{{Name: aws.String("tag:vk-token"), Values: []string{"token-1"}}}
	volumes, err := d.ec2.DescribeVolumes(t.Context(), &ec2.DescribeVolumesInput{Filters: tagged})
	passed(err == nil && len(volumes.Volumes) > 0, "its volume has the tags", volumes, err)
	cards, err := d.ec2.DescribeNetworkInterfaces(t.Context(), &ec2.DescribeNetworkInterfacesInput{Filters: tagged})
	if err == nil && len(cards.NetworkInterfaces) == 0 {
		fmt.Fprintln(&report, "- moto does not tag the network interface of an instance")
	} else {
		passed(err == nil, "its network interface has the tags", err)
	}
	data, err := d.ec2.DescribeInstanceAttribute(t.Context(), &ec2.DescribeInstanceAttributeInput{InstanceId: &m.ID, Attribute: types.InstanceAttributeNameUserData})
	passed(err == nil && data.UserData != nil && aws.ToString(data.UserData.Value) == base64.StdEncoding.EncodeToString(of("", "").UserData), "the instance has the user data", data, err)
	end, err := d.ec2.DescribeInstanceAttribute(t.Context(), &ec2.DescribeInstanceAttributeInput{InstanceId: &m.ID, Attribute: types.InstanceAttributeNameInstanceInitiatedShutdownBehavior})
	passed(err == nil && end.InstanceInitiatedShutdownBehavior != nil && aws.ToString(end.InstanceInitiatedShutdownBehavior.Value) == "terminate", "the instance terminates at power-off", end, err)
	passed(d.Tag(t.Context(), m.ID, map[string]string{"vk-uid": "u", "vk-token": "token-1b"}) == nil, "tags are added and replaced")
	now, found, err := d.Describe(t.Context(), m.ID)
	passed(err == nil && found && now.Tags["vk-uid"] == "u" && now.Tags["vk-token"] == "token-1b", "one instance has the new tags", now, err)
	_, found, err = d.Describe(t.Context(), "i-0123456789abcdef0")
	passed(err == nil && !found, "a missing instance is not found", err)
	text, err := d.Console(t.Context(), m.ID)
	passed(err == nil && text != "", "the console is text", text, err)
	cheap := of("token-3", "a*")
	cheap.Spot = true
	spot, err := d.Start(t.Context(), cheap)
	passed(err == nil && spot.Spot, "a spot instance says so", spot, err)
	again, err := d.Start(t.Context(), of("token-2", "ab"))
	if err == nil && again.ID != m.ID {
		fmt.Fprintln(&report, "- moto ignores client tokens: a second start makes a second instance")
	}
	err = d.Stop(t.Context(), m.ID)
	passed(err == nil, "a stop succeeds", err)
	if err := d.Stop(t.Context(), m.ID); err != nil { // "each call succeeds": TerminateInstances, Amazon EC2 API Reference, 2026-11-28
		fmt.Fprintf(&report, "- moto refuses a second stop with %s, as EC2 does not\n", codeOf(err))
	}
	now, _, err = d.Describe(t.Context(), m.ID)
	passed(err == nil && now.State == machine.Gone, "the stopped instance is gone", now, err)
	passed(errdefs.IsNotFound(d.Stop(t.Context(), "i-0123456789abcdef0")), "the stop of a missing instance is an error of the kind not-found")
	wrong := of("token-4", "a*")
	wrong.Image = "ami-00000000000000000"
	_, err = d.Start(t.Context(), wrong)
	if err == nil {
		fmt.Fprintln(&report, "- moto starts images that do not exist")
	} else {
		passed(machine.RefusalOf(err) == machine.Denied, "an image that does not exist is refused, for a user to correct", err)
	}
	if file := os.Getenv("MOTO_REPORT_EC2"); file != "" && !t.Failed() {
		head := "# Driver ec2 of provider kip on moto\n\nWritten by `make moto`. moto is that of Debian 13 (python3-moto 5.1.1). It runs no machine.\n\n"
		if err := os.WriteFile(file, []byte(head+report.String()), 0o644); err != nil { //nolint:gosec // it is read by all
			t.Fatal(err)
		}
	}
	t.Log("\n" + report.String())
}
