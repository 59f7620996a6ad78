// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	smtypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// batch is the maximum number of tasks in one request.
const batch = 100

// patience is the timeout of a request. A request that hangs must not stop the rounds that ask for states.
const patience = 30 * time.Second

// message is a message of a queue.
type message struct {
	Body          string
	ReceiptHandle string
}

// usage is an event of Container Insights about a container:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Container-Insights-reference-performance-logs-ECS.html, read on 2026-11-28.
type usage struct {
	ContainerName string
	TaskID        string `json:"TaskId"`
	Timestamp     int64
	CPUUtilized   *float64 `json:"CpuUtilized"` // in units
	// MemoryUtilized is in MiB.
	MemoryUtilized *float64
}

// listedSecret is a secret as Secrets Manager lists it.
type listedSecret struct {
	name string
	used time.Time // when the secret was last read (with the precision of a day) or written
}

// client has the services themselves.
type client struct {
	cluster string
	ecs     *ecs.Client
	secrets *secretsmanager.Client
	logs    *cloudwatchlogs.Client
	http    *http.Client
	signed  signed
}

// newClient returns a client with the credentials that the tools of AWS would use. The client repeats no
// request: the node waits as long as the service asks for, and the pod shows the reason.
func newClient(ctx context.Context, c Config) (*client, error) {
	options, err := accessOf(c)
	if err != nil {
		return nil, err
	}
	access, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("fargate provider: find credentials: %w", err)
	}
	access.Credentials = aws.NewCredentialsCache(&rereader{options: options, now: access.Credentials})
	line := &http.Client{Timeout: patience}
	if c, ok := access.HTTPClient.(*awshttp.BuildableClient); ok { // this client has the certificates of AWS_CA_BUNDLE, and no way to close connections
		line.Transport = c.GetTransport()
	}
	access.HTTPClient = line
	return &client{
		cluster: c.Cluster, ecs: ecs.NewFromConfig(access), secrets: secretsmanager.NewFromConfig(access), logs: cloudwatchlogs.NewFromConfig(access), http: line,
		signed: signed{region: c.Region, endpoint: c.Endpoint, credentials: access.Credentials, http: line},
	}, nil
}

// close ends idle connections.
func (c *client) close() { c.http.CloseIdleConnections() }

// register registers a definition, and returns its ARN.
func (c *client) register(ctx context.Context, in *ecs.RegisterTaskDefinitionInput) (string, error) {
	out, err := c.ecs.RegisterTaskDefinition(ctx, in)
	if err != nil {
		return "", kind(err, "register the task definition "+aws.ToString(in.Family))
	}
	if out.TaskDefinition == nil {
		return "", fmt.Errorf("register the task definition %s: ECS returned none", aws.ToString(in.Family))
	}
	return aws.ToString(out.TaskDefinition.TaskDefinitionArn), nil
}

// run runs a task. ECS recognizes a repeated request by its token.
func (c *client) run(ctx context.Context, in *ecs.RunTaskInput) (types.Task, error) {
	doing := "run a task in the cluster " + c.cluster
	in.Cluster = &c.cluster
	out, err := c.ecs.RunTask(ctx, in)
	switch {
	case err != nil:
		said := kind(err, doing)
		if errdefs.IsInvalidInput(said) || errdefs.IsNotFound(said) { // ECS accepted the definition: the problem belongs to the node, and passes
			said = errdefs.RetryAfter(fmt.Errorf("%s: %w", doing, err), unsaid)
		}
		return types.Task{}, said
	case len(out.Tasks) == 1:
		return out.Tasks[0], nil
	case len(out.Failures) > 0: // capacity and quotas of the account: both pass
		f := out.Failures[0]
		return types.Task{}, errdefs.RetryAfter(fmt.Errorf("%s: %s %s", doing, aws.ToString(f.Reason), aws.ToString(f.Detail)), unsaid)
	}
	return types.Task{}, fmt.Errorf("%s: ECS returned %d tasks", doing, len(out.Tasks))
}

// started lists the tasks with this startedBy. ECS allows no other filter together with startedBy, and returns only tasks with the
// desired status RUNNING.
func (c *client) started(ctx context.Context, by string) ([]string, error) {
	return c.list(ctx, &ecs.ListTasksInput{StartedBy: &by})
}

// stopped returns the ARNs of all tasks with the desired status STOPPED and any startedBy.
func (c *client) stopped(ctx context.Context) ([]string, error) {
	return c.list(ctx, &ecs.ListTasksInput{DesiredStatus: types.DesiredStatusStopped, LaunchType: types.LaunchTypeFargate})
}

func (c *client) list(ctx context.Context, in *ecs.ListTasksInput) (arns []string, err error) {
	in.Cluster = &c.cluster
	for pages := ecs.NewListTasksPaginator(c.ecs, in); pages.HasMorePages(); {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind(err, "list the tasks of the cluster "+c.cluster)
		}
		arns = append(arns, out.TaskArns...)
	}
	return arns, nil
}

// describe returns the tasks, and the ARNs that ECS reports as missing.
func (c *client) describe(ctx context.Context, arns []string) (tasks []types.Task, missing []string, err error) {
	for part := range slices.Chunk(arns, batch) {
		out, err := c.ecs.DescribeTasks(ctx, &ecs.DescribeTasksInput{Cluster: &c.cluster, Tasks: part, Include: []types.TaskField{types.TaskFieldTags}})
		if err != nil {
			return nil, nil, kind(err, fmt.Sprintf("look at %d tasks of the cluster %s", len(part), c.cluster))
		}
		tasks = append(tasks, out.Tasks...)
		for _, f := range out.Failures {
			if aws.ToString(f.Reason) != "MISSING" {
				return nil, nil, fmt.Errorf("look at task %s: %s %s", aws.ToString(f.Arn), aws.ToString(f.Reason), aws.ToString(f.Detail))
			}
			missing = append(missing, aws.ToString(f.Arn))
		}
	}
	if len(tasks)+len(missing) < len(arns) {
		return nil, nil, fmt.Errorf("look at %d tasks of the cluster %s: ECS answers for %d", len(arns), c.cluster, len(tasks)+len(missing))
	}
	return tasks, missing, nil
}

func (c *client) stop(ctx context.Context, arn, reason string) (types.Task, error) {
	out, err := c.ecs.StopTask(ctx, &ecs.StopTaskInput{Cluster: &c.cluster, Task: &arn, Reason: &reason})
	if err != nil {
		return types.Task{}, kind(err, "stop task "+arn)
	}
	if out.Task == nil {
		return types.Task{}, fmt.Errorf("stop task %s: ECS returned none", arn)
	}
	return *out.Task, nil
}

// ping returns an error if the cluster is missing or not active.
func (c *client) ping(ctx context.Context) error {
	out, err := c.ecs.DescribeClusters(ctx, &ecs.DescribeClustersInput{Clusters: []string{c.cluster}})
	if err != nil {
		return kind(err, "look at the cluster "+c.cluster)
	}
	if len(out.Clusters) != 1 || aws.ToString(out.Clusters[0].Status) != "ACTIVE" {
		return errors.New("cluster " + c.cluster + " of ECS is not there or not active: make it, or configure cluster and region")
	}
	return nil
}

// families returns the names of the families of definitions with a prefix.
func (c *client) families(ctx context.Context, prefix string, status types.TaskDefinitionFamilyStatus) (names []string, err error) {
	in := &ecs.ListTaskDefinitionFamiliesInput{FamilyPrefix: &prefix, Status: status}
	for pages := ecs.NewListTaskDefinitionFamiliesPaginator(c.ecs, in); pages.HasMorePages(); {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind(err, "list the task definitions of this node")
		}
		names = append(names, out.Families...)
	}
	return names, nil
}

// describeDefinition returns the newest active revision of a family, or an error of the kind not-found.
func (c *client) describeDefinition(ctx context.Context, family string) (*types.TaskDefinition, error) {
	out, err := c.ecs.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: &family})
	if err != nil {
		return nil, kind(err, "look for the task definition "+family)
	}
	if out.TaskDefinition == nil || out.TaskDefinition.Status != types.TaskDefinitionStatusActive {
		return nil, errdefs.NotFoundf("task definition %s is not active", family)
	}
	return out.TaskDefinition, nil
}

// removeDefinition deregisters and deletes the newest revision of a family. If there is none, it deletes the
// deregistered revisions.
func (c *client) removeDefinition(ctx context.Context, family string) error {
	var arns []string
	switch definition, err := c.describeDefinition(ctx, family); {
	case err == nil:
		arns = []string{aws.ToString(definition.TaskDefinitionArn)}
		if _, err := c.ecs.DeregisterTaskDefinition(ctx, &ecs.DeregisterTaskDefinitionInput{TaskDefinition: &arns[0]}); err != nil {
			return kind(err, "deregister the task definition "+arns[0])
		}
	case !errdefs.IsNotFound(err):
		return err
	default:
		out, err := c.ecs.ListTaskDefinitions(ctx, &ecs.ListTaskDefinitionsInput{FamilyPrefix: &family, Status: types.TaskDefinitionStatusInactive})
		if err != nil {
			return kind(err, "list the revisions of the task definition "+family)
		}
		arns = out.TaskDefinitionArns
	}
	for some := range slices.Chunk(arns, deletedAtOnce) {
		out, err := c.ecs.DeleteTaskDefinitions(ctx, &ecs.DeleteTaskDefinitionsInput{TaskDefinitions: some})
		if err != nil {
			return kind(err, "delete the task definition "+family)
		}
		for _, f := range out.Failures {
			return fmt.Errorf("delete the task definition %s: %s %s", aws.ToString(f.Arn), aws.ToString(f.Reason), aws.ToString(f.Detail))
		}
	}
	return nil
}

// deletedAtOnce is the maximum number of revisions of task definitions that one request deletes.
const deletedAtOnce = 10

// listSecrets returns the secrets whose names have one of the prefixes.
func (c *client) listSecrets(ctx context.Context, prefixes []string) (all []listedSecret, err error) {
	in := &secretsmanager.ListSecretsInput{Filters: []smtypes.Filter{{Key: smtypes.FilterNameStringTypeName, Values: prefixes}}}
	for pages := secretsmanager.NewListSecretsPaginator(c.secrets, in); pages.HasMorePages(); {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kind(err, "list the secrets of this node")
		}
		for _, s := range out.SecretList {
			used := aws.ToTime(s.LastChangedDate)
			if s.LastAccessedDate != nil && s.LastAccessedDate.Add(accessedWithin).After(used) {
				used = s.LastAccessedDate.Add(accessedWithin)
			}
			all = append(all, listedSecret{aws.ToString(s.Name), used})
		}
	}
	return all, nil
}

// accessedWithin is the precision of the last read of a secret: Secrets Manager reports only the day.
const accessedWithin = 24 * time.Hour
