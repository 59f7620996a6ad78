// SPDX-License-Identifier: Apache-2.0

// Package ec2 starts machines at Amazon EC2, or at a cloud with the same API.
//
// The guarantee: the call that makes an instance also tags the instance, its volumes and its network interface. EC2 terminates the instance when it powers
// itself off.
//
// Note: EC2 remembers tokens, and refuses a repeated start with changed user data. Start then returns the instance of the token.
package ec2

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// Config configures a Driver. The driver finds credentials in the same places as the AWS tools.
type Config struct {
	// Region is the region of machines. Default: the region of the environment.
	Region string `json:"region,omitempty"`
	// Endpoint is the URL of the API. Default: the URL of the region.
	Endpoint string `json:"endpoint,omitempty"`
	// SubnetID is the subnet of machines. Required.
	SubnetID string `json:"subnetID,omitempty"`
	// SecurityGroups are the groups of all machines. They must let the node reach the port of the agent.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// InstanceProfile is the ARN or the name of the profile for machines of pods that request no profile. Default: none.
	InstanceProfile string `json:"instanceProfile,omitempty"`
	// PublicAddress makes the node connect to the public addresses of machines.
	PublicAddress bool `json:"publicAddress,omitempty"`
}

// Driver starts machines at EC2.
type Driver struct {
	config Config
	port   int
	ec2    *ec2.Client
}

var _ machine.Driver = (*Driver)(nil)

// patience is the time limit of a request.
const patience = 30 * time.Second

// New returns a driver for a configuration. Agents listen on port.
func New(ctx context.Context, c Config, port int) (*Driver, error) {
	options := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }), // the provider retries, and a pod shows the error
	}
	if c.Region != "" {
		options = append(options, awsconfig.WithRegion(c.Region))
	}
	access, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("find the credentials for EC2: %w", err)
	}
	line := &http.Client{Timeout: patience}
	if h, ok := access.HTTPClient.(*awshttp.BuildableClient); ok { // the transport trusts the authorities in AWS_CA_BUNDLE
		line.Transport = h.GetTransport()
	}
	access.HTTPClient = line
	return &Driver{config: c, port: port, ec2: ec2.NewFromConfig(access, func(o *ec2.Options) {
		if c.Endpoint != "" {
			o.BaseEndpoint = &c.Endpoint
		}
	})}, nil
}

// tagged are the kinds of resources that every start makes.
var tagged = []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface}

// request returns the request for a machine.
func (d *Driver) request(s machine.Spec) *ec2.RunInstancesInput {
	in := &ec2.RunInstancesInput{
		ClientToken: &s.Token, MinCount: aws.Int32(1), MaxCount: aws.Int32(1), ImageId: &s.Image, InstanceType: types.InstanceType(s.Type.Name),
		UserData:                          aws.String(base64.StdEncoding.EncodeToString(s.UserData)),
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate,
		MetadataOptions: &types.InstanceMetadataOptionsRequest{ // the hop limit excludes clients behind another network hop
			HttpTokens: types.HttpTokensStateRequired, HttpPutResponseHopLimit: aws.Int32(1), HttpEndpoint: types.InstanceMetadataEndpointStateEnabled, HttpProtocolIpv6: types.InstanceMetadataProtocolStateDisabled,
		},
		NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{{
			DeviceIndex: aws.Int32(0), SubnetId: &d.config.SubnetID, Groups: slices.Concat(d.config.SecurityGroups, s.SecurityGroups), DeleteOnTermination: aws.Bool(true),
		}},
	}
	switch {
	case s.PrivateOnly:
		in.NetworkInterfaces[0].AssociatePublicIpAddress = aws.Bool(false)
	case d.config.PublicAddress:
		in.NetworkInterfaces[0].AssociatePublicIpAddress = aws.Bool(true)
	}
	kinds := tagged
	if s.Spot {
		kinds = append(slices.Clone(tagged), types.ResourceTypeSpotInstancesRequest)
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot, SpotOptions: &types.SpotMarketOptions{
			SpotInstanceType: types.SpotInstanceTypeOneTime, InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate,
		}}
	}
	for _, kind := range kinds {
		in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{ResourceType: kind, Tags: tagsOf(s.Tags)})
	}
	if s.VolumeGiB > 0 {
		in.BlockDeviceMappings = []types.BlockDeviceMapping{{
			DeviceName: aws.String("/dev/xvda"), Ebs: &types.EbsBlockDevice{VolumeSize: aws.Int32(int32(s.VolumeGiB)), DeleteOnTermination: aws.Bool(true), VolumeType: types.VolumeTypeGp3}, //nolint:gosec // it is bounded
		}}
	}
	profile := s.InstanceProfile
	if profile == "" {
		profile = d.config.InstanceProfile
	}
	switch {
	case strings.HasPrefix(profile, "arn:"):
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Arn: &profile}
	case profile != "":
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: &profile}
	}
	return in
}

// tagsOf returns sorted tags: a repeated start must be identical.
func tagsOf(all map[string]string) (tags []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(all)) {
		tags = append(tags, types.Tag{Key: aws.String(k), Value: aws.String(all[k])})
	}
	return tags
}

// Start implements machine.Driver.
func (d *Driver) Start(ctx context.Context, s machine.Spec) (machine.Machine, error) {
	if len(s.UserData) > 16<<10 {
		return machine.Machine{}, errdefs.InvalidInputf("the user data have %d bytes, and EC2 takes 16 KiB", len(s.UserData))
	}
	out, err := d.ec2.RunInstances(ctx, d.request(s))
	if codeOf(err) == "IdempotentParameterMismatch" {
		all, listErr := d.list(ctx, []types.Filter{{Name: aws.String("client-token"), Values: []string{s.Token}}})
		if listErr == nil && len(all) > 0 {
			return all[0], nil
		}
		return machine.Machine{}, errors.Join(fmt.Errorf("EC2 has made the machine from an earlier request, and does not show it yet: %w", err), listErr)
	}
	if err != nil {
		return machine.Machine{}, kind(err)
	}
	if len(out.Instances) != 1 {
		return machine.Machine{}, fmt.Errorf("EC2 returned %d instances, want one", len(out.Instances))
	}
	return d.machineOf(out.Instances[0]), nil
}

// Stop implements machine.Driver.
func (d *Driver) Stop(ctx context.Context, id string) error {
	_, err := d.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	return kind(err)
}

// List implements machine.Driver.
func (d *Driver) List(ctx context.Context, tags map[string]string) ([]machine.Machine, error) {
	var filters []types.Filter
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		filters = append(filters, types.Filter{Name: aws.String("tag:" + k), Values: []string{escape(tags[k])}})
	}
	return d.list(ctx, filters)
}

// escape escapes wildcard characters in values of filters.
var escape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`).Replace

// pageOf is the maximum number of instances on a page.
const pageOf = 1000

func (d *Driver) list(ctx context.Context, filters []types.Filter) (all []machine.Machine, err error) {
	pages := ec2.NewDescribeInstancesPaginator(d.ec2, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(pageOf)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind(err)
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				all = append(all, d.machineOf(i))
			}
		}
	}
	return all, nil
}

// Describe implements machine.Driver.
func (d *Driver) Describe(ctx context.Context, id string) (machine.Machine, bool, error) {
	all, err := d.list(ctx, []types.Filter{{Name: aws.String("instance-id"), Values: []string{id}}})
	if err != nil || len(all) == 0 {
		return machine.Machine{}, false, err
	}
	return all[0], true, nil
}

// Tag implements machine.Driver.
func (d *Driver) Tag(ctx context.Context, id string, tags map[string]string) error {
	_, err := d.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: tagsOf(tags)})
	return kind(err)
}

// Console implements machine.Driver.
func (d *Driver) Console(ctx context.Context, id string) (string, error) {
	out, err := d.ec2.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: &id})
	if err != nil {
		return "", kind(err)
	}
	text, err := base64.StdEncoding.DecodeString(aws.ToString(out.Output))
	if err != nil {
		return "", fmt.Errorf("read the console of %s: %w", id, err)
	}
	return string(text), nil
}

// states maps the states of instances. This provider does not stop instances, so it treats a stopped instance, whose volume still costs money, as
// stopping.
var states = map[types.InstanceStateName]machine.State{
	types.InstanceStateNamePending: machine.Starting, types.InstanceStateNameRunning: machine.Running, types.InstanceStateNameShuttingDown: machine.Stopping,
	types.InstanceStateNameStopping: machine.Stopping, types.InstanceStateNameStopped: machine.Stopping, types.InstanceStateNameTerminated: machine.Gone,
}

// reasons maps the codes of instances that the cloud took away.
var reasons = map[string]string{
	"Server.SpotInstanceTermination": machine.ReasonPreempted, "Server.SpotInstanceShutdown": machine.ReasonPreempted,
}

// machineOf converts an instance.
func (d *Driver) machineOf(i types.Instance) machine.Machine {
	m := machine.Machine{
		ID: aws.ToString(i.InstanceId), Type: string(i.InstanceType), Tags: map[string]string{}, IP: aws.ToString(i.PrivateIpAddress),
		Spot: i.InstanceLifecycle == types.InstanceLifecycleTypeSpot, Created: aws.ToTime(i.LaunchTime),
	}
	for _, t := range i.Tags {
		m.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	host := m.IP
	if d.config.PublicAddress {
		host = aws.ToString(i.PublicIpAddress)
	}
	if host != "" {
		m.Address = net.JoinHostPort(host, strconv.Itoa(d.port))
	}
	if i.State != nil {
		m.State = states[i.State.Name]
	}
	if i.StateReason != nil && m.State != machine.Running && m.State != machine.Starting {
		code := aws.ToString(i.StateReason.Code)
		m.Message = aws.ToString(i.StateReason.Message)
		if m.Reason = reasons[code]; m.Reason == "" {
			m.Reason = code
		}
	}
	return m
}

// refusals maps error codes of EC2. Sources: Kip's list (pkg/server/cloud/aws, 2021-09-09) and "Error codes for the Amazon EC2 API", 2026-11-28.
var refusals = map[string]machine.Refusal{
	"InsufficientInstanceCapacity": machine.NoCapacity, "InsufficientCapacity": machine.NoCapacity, "InsufficientHostCapacity": machine.NoCapacity,
	"InsufficientReservedInstanceCapacity": machine.NoCapacity, "Unsupported": machine.NoCapacity, "UnfulfillableCapacity": machine.NoCapacity,
	"SpotMaxPriceTooLow":                machine.NoCapacity,
	"InsufficientFreeAddressesInSubnet": machine.Quota, "InsufficientAddressCapacity": machine.Quota, "InstanceLimitExceeded": machine.Quota,
	"MaxSpotInstanceCountExceeded": machine.Quota, "VcpuLimitExceeded": machine.Quota, "VolumeLimitExceeded": machine.Quota, "NetworkInterfaceLimitExceeded": machine.Quota,
	"RequestLimitExceeded": machine.Throttled, "Throttling": machine.Throttled, "ThrottlingException": machine.Throttled, "RequestThrottled": machine.Throttled,
	"InstanceCreationFailed": machine.Throttled,
	"UnauthorizedOperation":  machine.Denied, "AuthFailure": machine.Denied, "OptInRequired": machine.Denied, "PendingVerification": machine.Denied,
	"ExpiredToken": machine.Denied, "RequestExpired": machine.Denied, "InvalidClientTokenId": machine.Denied, "SignatureDoesNotMatch": machine.Denied, "Blocked": machine.Denied,
}

// advice is the remedy for a refusal.
var advice = map[machine.Refusal]string{
	machine.Denied: "look at the credentials of this machine, its clock, and the policy in the README",
	machine.Quota:  "raise the quota, or take a larger subnet",
}

func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// kind gives an error of EC2 its kind. An error without a kind does not show whether EC2 has executed the request.
func kind(err error) error {
	if err == nil {
		return nil
	}
	code := codeOf(err)
	var answer *smithyhttp.ResponseError
	failed := errors.As(err, &answer) && answer.HTTPStatusCode() >= http.StatusInternalServerError
	why := refusals[code]
	switch {
	case why != 0:
		if do := advice[why]; do != "" {
			err = fmt.Errorf("%w: %s", err, do)
		}
		return machine.Refuse(why, err)
	case code == "InvalidInstanceID.NotFound":
		return errdefs.AsNotFound(err)
	case failed || code == "":
		return err
	case strings.HasPrefix(code, "Invalid") || strings.HasPrefix(code, "Missing") || strings.HasPrefix(code, "Unknown") || code == "IncorrectState":
		return machine.Refuse(machine.Denied, err) // a user can correct the configuration
	}
	return err
}
