// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	smithy "github.com/aws/smithy-go"
)

// maxAnswer is how many bytes of an answer are read.
const maxAnswer = 4 << 20

// signed asks services of which a few requests are needed, with the vendor's signer and without a client of the vendor: each of those would make the
// program larger by megabytes.
type signed struct {
	region, endpoint string
	credentials      aws.CredentialsProvider
	http             *http.Client
}

// query is a request of the protocol of EC2 and IAM: a form, and XML.
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

// json is a request of the protocols JSON 1.0 and 1.1.
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

// refusalOf is the error of an answer, in JSON or XML.
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

// rootOf is the address of the service that has a queue.
func rootOf(queue string) string {
	u, err := url.Parse(queue)
	if err != nil {
		return queue // the configuration was looked at
	}
	return u.Scheme + "://" + u.Host + "/"
}
