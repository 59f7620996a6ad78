// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	smtypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	smithy "github.com/aws/smithy-go"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// keep stores a secret by its name, and returns its ARN. An existing secret of the name has this value already. keep
// restores a secret that is scheduled for deletion.
func (c *client) keep(ctx context.Context, s secret) (string, error) {
	out, err := c.secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{
		Name: &s.name, SecretString: &s.text,
		Description: aws.String("Of pods, by Virtual Kubelet"), Tags: []smtypes.Tag{{Key: aws.String(identity.TagCluster), Value: &s.owner.Cluster}, {Key: aws.String(identity.TagNode), Value: &s.owner.Node}},
	})
	if err == nil {
		return aws.ToString(out.ARN), nil
	}
	var exists *smtypes.ResourceExistsException
	switch {
	case toBeDeleted(err):
		if err := c.restore(ctx, s.name); err != nil {
			return "", err
		}
	case !errors.As(err, &exists):
		return "", kind(bare(err), "keep the secret "+s.name)
	}
	if s.own {
		out, err := c.secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: &s.name, SecretString: &s.text})
		if err != nil {
			return "", kind(bare(err), "replace the secret "+s.name)
		}
		return aws.ToString(out.ARN), nil
	}
	old, err := c.secrets.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &s.name})
	if err != nil {
		return "", kind(err, "look for the secret "+s.name)
	}
	return aws.ToString(old.ARN), nil
}

// toBeDeleted reports whether a service says that a secret is scheduled for deletion. Such a secret exists and
// keeps its name until its recovery window ends.
func toBeDeleted(err error) bool {
	var invalid *smtypes.InvalidRequestException
	return errors.As(err, &invalid) && (strings.Contains(invalid.ErrorMessage(), "scheduled for deletion") || strings.Contains(invalid.ErrorMessage(), "marked for deletion"))
}

// restore cancels the deletion of a secret. The secret was removed because of its age, and is needed again.
func (c *client) restore(ctx context.Context, name string) error {
	_, err := c.secrets.RestoreSecret(ctx, &secretsmanager.RestoreSecretInput{SecretId: &name})
	return kind(err, "restore the secret "+name+", which is scheduled for deletion")
}

// bareError is an error of a service without its message.
type bareError struct {
	api smithy.APIError
	err error
}

// bare leaves out the message of a service about a request with a secret, because the message may quote the
// secret. It keeps the messages of denied and throttled requests: the service sends them before it reads the
// request.
func bare(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) && refused[api.ErrorCode()] == "" && !slices.Contains(tooMany, api.ErrorCode()) {
		return &bareError{api, err}
	}
	return err
}

// Error implements error.
func (b *bareError) Error() string {
	return b.api.ErrorCode() + ", with a message that may quote the value"
}

// Unwrap returns the error that has the kind.
func (b *bareError) Unwrap() error { return b.err }

// drop removes a secret for good.
func (c *client) drop(ctx context.Context, name string) error {
	_, err := c.secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: &name, ForceDeleteWithoutRecovery: aws.Bool(true)})
	return kind(err, "remove the secret "+name)
}

// keyOf is the name of the secret with the key of a cluster.
func keyOf(cluster string) string { return "vk-key-" + identity.Hash(cluster) }

// key returns the key for the names of the secrets of a Kubernetes cluster. The first node that asks for the key makes
// it.
func (c *client) key(ctx context.Context, cluster string) ([]byte, error) {
	name := keyOf(cluster)
	look := func() ([]byte, error) {
		out, err := c.secrets.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
		if err != nil {
			return nil, kind(err, "read the key "+name)
		}
		return out.SecretBinary, nil
	}
	key, err := look()
	if toBeDeleted(err) {
		if err := c.restore(ctx, name); err != nil {
			return nil, err
		}
		key, err = look()
	}
	if !errdefs.IsNotFound(err) {
		return key, err
	}
	key = make([]byte, 32)
	_, _ = rand.Read(key) // rand.Read never fails
	_, err = c.secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{
		Name: &name, SecretBinary: key, Description: aws.String("Key of the names of secrets of pods, by Virtual Kubelet"),
		Tags: []smtypes.Tag{{Key: aws.String(identity.TagCluster), Value: &cluster}},
	})
	var exists *smtypes.ResourceExistsException
	if errors.As(err, &exists) { // another node was faster
		return look()
	}
	return key, kind(bare(err), "keep the key "+name)
}
