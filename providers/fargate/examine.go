// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	smithy "github.com/aws/smithy-go"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

const (
	// nothing is the name of a definition and a secret that do not exist. noTaskID is the ID of no task. They
	// serve to test rights: without a right, a service denies the request before it looks for the thing.
	nothing  = "vk-doctor"
	noTaskID = "00000000000000000000000000000000"
)

// vcpuQuotas are the codes of the quotas of virtual CPUs of all tasks, by capacity provider.
var vcpuQuotas = map[string]string{OnDemand: "L-3032A538", Spot: "L-36FBB829"}

// Examine implements service.Examiner. It changes nothing: it tries the rights on things that do not exist.
func (d *driver) Examine(ctx context.Context) error {
	if err := d.client.ping(ctx); err != nil {
		return err // all later checks would fail too
	}
	var problems []error
	if _, err := d.client.started(ctx, d.mapping.startedBy()); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(append(problems, d.examineLog(ctx), d.client.examine(ctx, d.config, keyOf(d.mapping.owner.Cluster)))...)
}

// examineLog looks for the group of logs.
func (d *driver) examineLog(ctx context.Context) error {
	if d.config.LogGroup == "" {
		return nil
	}
	_, _, err := d.client.log(ctx, d.config.LogGroup, streamPrefix+"/doctor", "", time.Time{})
	switch {
	case errdefs.IsNotFound(err) && strings.Contains(err.Error(), "log group"): // the group is missing, not only the stream, which never exists
		return fmt.Errorf("%w: make the group, or configure logGroup: a task whose group is not there does not start", err)
	case errdefs.IsNotFound(err):
		return nil
	}
	return err
}

// examine tries the rights, and checks everything that the configuration names.
func (c *client) examine(ctx context.Context, conf Config, key string) error {
	var problems []error
	try := func(what string, err error) {
		if err = kind(err, what); err != nil && !errdefs.IsNotFound(err) && !errdefs.IsInvalidInput(err) {
			problems = append(problems, err)
		}
	}
	try("look at a task", errorOf(c.ecs.DescribeTasks(ctx, &ecs.DescribeTasksInput{Cluster: &c.cluster, Tasks: []string{noTaskID}})))
	try("look for a task definition", errorOf(c.ecs.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: aws.String(nothing)})))
	try("register a task definition", errorOf(c.ecs.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
		Family: aws.String(nothing), Cpu: aws.String("1"), ContainerDefinitions: []types.ContainerDefinition{}, // always rejected
	})))
	try("list task definitions", errorOf(c.ecs.ListTaskDefinitionFamilies(ctx, &ecs.ListTaskDefinitionFamiliesInput{FamilyPrefix: aws.String(nothing)})))
	try("list the revisions of a task definition", errorOf(c.ecs.ListTaskDefinitions(ctx, &ecs.ListTaskDefinitionsInput{FamilyPrefix: aws.String(nothing)})))
	try("deregister a task definition", errorOf(c.ecs.DeregisterTaskDefinition(ctx, &ecs.DeregisterTaskDefinitionInput{TaskDefinition: aws.String(nothing + ":1")})))
	try("delete a task definition", errorOf(c.ecs.DeleteTaskDefinitions(ctx, &ecs.DeleteTaskDefinitionsInput{TaskDefinitions: []string{nothing + ":1"}})))
	try("run a task", errorOf(c.ecs.RunTask(ctx, &ecs.RunTaskInput{Cluster: &c.cluster, TaskDefinition: aws.String(nothing)})))
	try("stop a task", errorOf(c.ecs.StopTask(ctx, &ecs.StopTaskInput{Cluster: &c.cluster, Task: aws.String(noTaskID)})))
	if conf.ExecRole != "" {
		try("execute a command", errorOf(c.ecs.ExecuteCommand(ctx, &ecs.ExecuteCommandInput{Cluster: &c.cluster, Task: aws.String(noTaskID), Command: aws.String("true"), Interactive: true})))
	}
	try("read the key "+key, errorOf(c.secrets.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &key})))
	if _, err := c.listSecrets(ctx, []string{nothing}); err != nil {
		problems = append(problems, err)
	}
	try("look for a secret", errorOf(c.secrets.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: aws.String(nothing)})))
	both := &secretsmanager.CreateSecretInput{Name: aws.String(nothing), SecretString: aws.String("-"), SecretBinary: []byte("-")} // always rejected
	try("keep a secret", errorOf(c.secrets.CreateSecret(ctx, both)))
	try("replace a secret", errorOf(c.secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: aws.String(nothing), SecretString: aws.String("-")})))
	try("restore a secret", errorOf(c.secrets.RestoreSecret(ctx, &secretsmanager.RestoreSecretInput{SecretId: aws.String(nothing)})))
	try("remove a secret", errorOf(c.secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: aws.String(nothing)})))
	if conf.Queue != "" {
		problems = append(problems, c.examineQueue(ctx, conf.Queue))
	}
	return errors.Join(append(problems, c.examineProvider(ctx, conf), c.examineNetwork(ctx, conf), c.examineRoles(ctx, conf), c.examineQuota(ctx, conf))...)
}

// errorOf drops the result of a request and returns its error.
func errorOf[T any](_ T, err error) error { return err }

// examineProvider checks that the cluster has the configured capacity provider.
func (c *client) examineProvider(ctx context.Context, conf Config) error {
	if conf.CapacityProvider == "" {
		return nil
	}
	out, err := c.ecs.DescribeClusters(ctx, &ecs.DescribeClustersInput{Clusters: []string{c.cluster}})
	if err != nil {
		return kind(err, "look at the capacity providers of the cluster "+c.cluster)
	}
	if len(out.Clusters) == 1 && !slices.Contains(out.Clusters[0].CapacityProviders, conf.CapacityProvider) {
		return fmt.Errorf("the cluster %s does not have the capacity provider %s of capacityProvider, and ECS refuses each task: give it to the cluster with "+
			"PutClusterCapacityProviders, or leave capacityProvider out to run pods on demand", c.cluster, conf.CapacityProvider)
	}
	return nil
}

// examineQueue checks a queue without receiving its messages.
func (c *client) examineQueue(ctx context.Context, queue string) error {
	const what = "look at queue, or leave it out: then ECS is asked"
	err := c.signed.json(ctx, "sqs", rootOf(queue), "AmazonSQS.GetQueueAttributes", map[string]any{"QueueUrl": queue, "AttributeNames": []string{"QueueArn"}}, nil)
	if err != nil {
		return fmt.Errorf("%w: %s", kind(err, "look at the queue "+queue), what)
	}
	// A message that is received and not deleted counts as a failed delivery. So this request asks for too many
	// messages, and receives none.
	err = c.signed.json(ctx, "sqs", rootOf(queue), "AmazonSQS.ReceiveMessage", map[string]any{"QueueUrl": queue, "MaxNumberOfMessages": queueBatch + 1}, nil)
	if err != nil && !wrongValue(err) {
		return fmt.Errorf("%w: %s", kind(err, "read the queue "+queue), what)
	}
	err = c.signed.json(ctx, "sqs", rootOf(queue), "AmazonSQS.DeleteMessageBatch", map[string]any{
		"QueueUrl": queue, "Entries": []map[string]string{{"Id": "0", "ReceiptHandle": nothing}},
	}, nil)
	if err != nil {
		return fmt.Errorf("%w: %s", kind(err, "remove messages of the queue "+queue), what)
	}
	return nil
}

// wrongValue reports whether SQS allows the request and rejects only one of its values.
func wrongValue(err error) bool {
	var said smithy.APIError
	if !errors.As(err, &said) {
		return false
	}
	code := said.ErrorCode()
	return strings.HasPrefix(code, "InvalidParameterValue") || strings.HasPrefix(code, "ReadCountOutOfRange")
}

// denied reports whether a request failed for a missing right. The callers ignore this error, because only doctor needs these rights.
func denied(err error) bool {
	var said smithy.APIError
	if !errors.As(err, &said) {
		return false
	}
	switch said.ErrorCode() {
	case "UnauthorizedOperation", "AccessDenied", "AccessDeniedException":
		return true
	}
	return false
}

// examineNetwork looks for the subnets and the security groups.
func (c *client) examineNetwork(ctx context.Context, conf Config) error {
	host := "https://ec2." + domainOf(conf.Region)
	var problems []error
	for _, ask := range []struct {
		action, list, field string
		ids                 []string
	}{{"DescribeSubnets", "SubnetId", "subnets", conf.Subnets}, {"DescribeSecurityGroups", "GroupId", "securityGroups", conf.SecurityGroups}} {
		for _, id := range ask.ids { // separately, because an answer names only the first missing one
			form := url.Values{"Action": {ask.action}, "Version": {"2016-11-15"}, ask.list + ".1": {id}}
			if err := c.signed.query(ctx, "ec2", host, conf.Region, form, &struct{}{}); err != nil && !denied(err) {
				problems = append(problems, fmt.Errorf("look for %s of %s: %w: configure an existing one in the VPC and the region, or make it", id, ask.field, err))
			}
		}
	}
	return errors.Join(problems...)
}

// examineRoles checks that the roles exist, and that tasks may assume them.
func (c *client) examineRoles(ctx context.Context, conf Config) error {
	var problems []error
	roles := map[string]string{"executionRole": conf.ExecutionRole, "execRole": conf.ExecRole}
	for _, field := range []string{"executionRole", "execRole"} {
		arn := roles[field]
		if arn == "" {
			continue
		}
		var out struct {
			Policy string `xml:"GetRoleResult>Role>AssumeRolePolicyDocument"`
		}
		form := url.Values{"Action": {"GetRole"}, "Version": {"2010-05-08"}, "RoleName": {arn[strings.LastIndex(arn, "/")+1:]}}
		host, region := iamOf(conf.Region)
		err := c.signed.query(ctx, "iam", host, region, form, &out)
		policy, _ := url.QueryUnescape(out.Policy)
		switch {
		case denied(err):
		case err != nil:
			problems = append(problems, fmt.Errorf("look for the role %s: %w: make it, or configure %s", arn, err, field))
		case !strings.Contains(policy, "ecs-tasks.amazonaws.com"):
			problems = append(problems, fmt.Errorf("role %s of %s: no task may take it: let its trust policy name the service ecs-tasks.amazonaws.com", arn, field))
		}
	}
	return errors.Join(problems...)
}

// examineQuota compares the capacity of the node with the quota of the account.
func (c *client) examineQuota(ctx context.Context, conf Config) error {
	var out struct{ Quota struct{ Value float64 } }
	provider := cmp.Or(conf.CapacityProvider, OnDemand)
	err := c.signed.json(ctx, "servicequotas", "https://servicequotas."+domainOf(conf.Region), "ServiceQuotasV20190624.GetServiceQuota", map[string]string{
		"ServiceCode": "fargate", "QuotaCode": vcpuQuotas[provider],
	}, &out)
	switch offered := conf.Capacity.Cpu().AsApproximateFloat64(); {
	case denied(err):
		return nil
	case err != nil:
		return kind(err, "look at the quota of virtual CPUs of "+provider)
	case out.Quota.Value < offered:
		return fmt.Errorf("the account may run %g virtual CPUs of %s at once, and capacity.cpu offers %g: lower it, or ask for more in Service Quotas (%s)",
			out.Quota.Value, provider, offered, vcpuQuotas[provider])
	}
	return nil
}

// domainOf returns the domain of the services of a region.
func domainOf(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return region + ".amazonaws.com.cn"
	}
	return region + ".amazonaws.com"
}

// iamOf returns the address of IAM for a region, and the region of its signatures. Each partition has one IAM.
func iamOf(region string) (url, signed string) {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "https://iam.cn-north-1.amazonaws.com.cn", "cn-north-1"
	case strings.HasPrefix(region, "us-gov-"):
		return "https://iam.us-gov.amazonaws.com", "us-gov-west-1"
	}
	return "https://iam.amazonaws.com", "us-east-1"
}
