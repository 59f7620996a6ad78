// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	smithy "github.com/aws/smithy-go"
)

// readAgain is the interval at which keys without an expiry are read again. A user who replaces a file of keys must keep the old keys
// valid for longer.
const readAgain = time.Minute

// accessOf returns the options for the AWS SDK: credentials, region and endpoint.
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
		if _, err := os.Stat(c.CredentialsFile); err != nil { // otherwise the SDK would look in the next place
			return nil, fmt.Errorf("fargate provider: credentialsFile: %w", err)
		}
		// A named profile has precedence over the environment, which may have the keys of another user.
		options = append(options, awsconfig.WithSharedCredentialsFiles([]string{c.CredentialsFile}), awsconfig.WithSharedConfigProfile(cmp.Or(c.Profile, "default")))
	}
	if c.CAFile != "" {
		authorities, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("fargate provider: caFile: %w", err)
		}
		options = append(options, func(o *awsconfig.LoadOptions) error { // each call needs a new reader, because the SDK reads it to its end
			return awsconfig.WithCustomCABundle(bytes.NewReader(authorities))(o)
		})
	}
	return options, nil
}

// rereader loads keys without an expiry again, because their files may change. The SDK renews keys with an expiry.
type rereader struct {
	options []func(*awsconfig.LoadOptions) error
	now     aws.CredentialsProvider
	used    bool
}

// Retrieve implements aws.CredentialsProvider. The cache before it makes one call at a time.
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

// maxAnswer is the maximum number of bytes read from an answer.
const maxAnswer = 4 << 20

// signed sends the few requests that other services need. It uses the vendor's signer, but no client of the
// vendor: each client would make the program larger by megabytes.
type signed struct {
	region, endpoint string
	credentials      aws.CredentialsProvider
	http             *http.Client
}

// query makes a request of the protocol of EC2 and IAM: a form, and XML.
func (s signed) query(ctx context.Context, service, host, region string, form url.Values, out any) error {
	data, err := s.send(ctx, service, host, region, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, form.Encode())
	if err != nil {
		return err
	}
	if err := xml.Unmarshal(data, out); err != nil {
		return fmt.Errorf("the answer of %s: %w", service, err)
	}
	return nil
}

// json makes a request of the protocols JSON 1.0 and 1.1.
func (s signed) json(ctx context.Context, service, url, target string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	version := "1.1"
	if service == "sqs" {
		version = "1.0"
	}
	data, err := s.send(ctx, service, url, s.region, map[string]string{"Content-Type": "application/x-amz-json-" + version, "X-Amz-Target": target}, string(body))
	if err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("the answer of %s: %w", service, err)
	}
	return nil
}

// send signs and sends a request.
func (s signed) send(ctx context.Context, service, to, region string, header map[string]string, body string) ([]byte, error) {
	if s.endpoint != "" {
		to = s.endpoint
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if r.URL.Path == "" {
		r.URL.Path = "/"
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	key, err := s.credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(ctx, key, r, hex.EncodeToString(sum[:]), service, region, time.Now()); err != nil {
		return nil, err
	}
	answer, err := s.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, refusalOf(answer, data)
	}
	return data, nil
}

// refusalOf returns the error of an answer in JSON or XML.
func refusalOf(answer *http.Response, data []byte) error {
	out := &smithy.GenericAPIError{Code: answer.Status, Message: "without a reason"}
	var text struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	type problem struct{ Code, Message string }
	var marked struct {
		Error  problem // of IAM
		Errors struct{ Error problem }
	}
	switch {
	case json.Unmarshal(data, &text) == nil && text.Type != "":
		out.Code, out.Message = text.Type[strings.LastIndex(text.Type, "#")+1:], text.Message
	case xml.Unmarshal(data, &marked) == nil && marked.Errors.Error.Code != "":
		out.Code, out.Message = marked.Errors.Error.Code, marked.Errors.Error.Message
	case marked.Error.Code != "":
		out.Code, out.Message = marked.Error.Code, marked.Error.Message
	}
	return out
}

// rootOf returns the address of the service of a queue.
func rootOf(queue string) string {
	u, err := url.Parse(queue)
	if err != nil {
		return queue // the configuration was validated
	}
	return u.Scheme + "://" + u.Host + "/"
}
