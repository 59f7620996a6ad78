// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	smtypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

func (c *client) families(ctx context.Context, prefix string, status ecstypes.TaskDefinitionFamilyStatus) (names []string, err error) {
	in := &ecs.ListTaskDefinitionFamiliesInput{FamilyPrefix: &prefix, Status: status}
	for {
		out, err := c.ecs.ListTaskDefinitionFamilies(ctx, in)
		if err != nil {
			return nil, kind(err, "list the task definitions of this node")
		}
		names = append(names, out.Families...)
		if aws.ToString(out.NextToken) == "" {
			return names, nil
		}
		in.NextToken = out.NextToken
	}
}

func (c *client) describeDefinition(ctx context.Context, family string) (*ecstypes.TaskDefinition, error) {
	out, err := c.ecs.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: &family})
	if err != nil {
		return nil, kind(err, "look for the task definition "+family)
	}
	if out.TaskDefinition == nil || out.TaskDefinition.Status != ecstypes.TaskDefinitionStatusActive {
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
		out, err := c.ecs.ListTaskDefinitions(ctx, &ecs.ListTaskDefinitionsInput{FamilyPrefix: &family, Status: ecstypes.TaskDefinitionStatusInactive})
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

func (c *client) listSecrets(ctx context.Context, prefixes []string) (all []listedSecret, err error) {
	in := &secretsmanager.ListSecretsInput{Filters: []smtypes.Filter{{Key: smtypes.FilterNameStringTypeName, Values: prefixes}}}
	for {
		out, err := c.secrets.ListSecrets(ctx, in)
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
		if aws.ToString(out.NextToken) == "" {
			return all, nil
		}
		in.NextToken = out.NextToken
	}
}

// accessedWithin is the precision of the last read of a secret: Secrets Manager reports only the day.
const accessedWithin = 24 * time.Hour
