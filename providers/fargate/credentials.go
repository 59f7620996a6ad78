// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
)

// readAgain is how long keys without an end are used until they are read again: whoever replaces a file of keys has both valid for longer.
const readAgain = time.Minute

// accessOf is what the tools of AWS are told to find of credentials, region and endpoint.
func accessOf(c Config) ([]func(*awsconfig.LoadOptions) error, error) {
	options := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithRegion(c.Region), awsconfig.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		awsconfig.WithAppID("virtual-kubelet"),
	}
	if c.Endpoint != "" {
		options = append(options, awsconfig.WithBaseEndpoint(c.Endpoint))
	}
	if c.Profile != "" {
		options = append(options, awsconfig.WithSharedConfigProfile(c.Profile))
	}
	if c.CredentialsFile != "" {
		if _, err := os.Stat(c.CredentialsFile); err != nil { // else the next place would be looked at
			return nil, fmt.Errorf("fargate provider: credentialsFile: %w", err)
		}
		// A profile that is said goes before the environment, which may have the keys of somebody else.
		options = append(options, awsconfig.WithSharedCredentialsFiles([]string{c.CredentialsFile}), awsconfig.WithSharedConfigProfile(or(c.Profile, "default")))
	}
	if c.CAFile != "" {
		authorities, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("fargate provider: caFile: %w", err)
		}
		options = append(options, func(o *awsconfig.LoadOptions) error { // it is read each time
			return awsconfig.WithCustomCABundle(bytes.NewReader(authorities))(o)
		})
	}
	return options, nil
}

// rereader finds keys that have no end anew, as files change. Those with an end are renewed by whoever gave them.
type rereader struct {
	options []func(*awsconfig.LoadOptions) error
	now     aws.CredentialsProvider
	used    bool
}

// Retrieve implements aws.CredentialsProvider. One call at a time is made, by the cache before it.
func (r *rereader) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if r.used {
		again, err := awsconfig.LoadDefaultConfig(ctx, r.options...)
		if err != nil {
			return aws.Credentials{}, fmt.Errorf("find credentials: %w", err)
		}
		r.now = again.Credentials
	}
	found, err := r.now.Retrieve(ctx)
	if err != nil {
		return found, err
	}
	if r.used = !found.CanExpire; r.used {
		found.CanExpire, found.Expires = true, time.Now().Add(readAgain)
	}
	return found, nil
}
