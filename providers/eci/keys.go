// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sign"
)

const (
	// keyTimeout bounds the request for a temporary key.
	keyTimeout = 10 * time.Second
	// keyRetry is how long to wait after a failed request for a key.
	keyRetry = 10 * time.Second
	// maxKeyAnswer is the maximum number of bytes read from the answer.
	maxKeyAnswer = 1 << 20
	// sessionName is the name of the session at STS.
	sessionName = "virtual-kubelet"
)

// keys returns the source of the key that signs requests.
func (c Config) keys(next http.RoundTripper, now func() time.Time) sign.KeySource {
	switch o, i := c.OIDC, c.InstanceRole; {
	case o.RoleARN != "":
		return renewed(fmt.Sprintf("take the role %s by OIDC at %s", o.RoleARN, o.Endpoint), oidc{o, next, now}.ask, now)
	case i.Name != "":
		if t, ok := next.(*http.Transport); ok { // a proxy would return the metadata of another instance, or read the key
			t = t.Clone()
			t.Proxy = nil
			next = t
		}
		return renewed(fmt.Sprintf("ask %s for the key of role %s of this instance", i.Endpoint, i.Name), instanceRole{i, next}.ask, now)
	}
	return func(ctx context.Context) (sign.Key, error) { // a changed file is read again
		return sign.Key{Access: c.AccessKeyID.Value(ctx), Secret: c.AccessKeySecret.Value(ctx), Token: c.SecurityToken.Value(ctx)}, nil
	}
}

// credentials is a temporary key in the format of the services of Alibaba Cloud.
type credentials struct {
	AccessKeyID     string `json:"AccessKeyId"`
	AccessKeySecret string
	SecurityToken   string
	Expiration      time.Time
}

func (c credentials) key() sign.Key {
	return sign.Key{Access: c.AccessKeyID, Secret: c.AccessKeySecret, Token: c.SecurityToken}
}

// renewed caches a temporary key, and requests the next one in the last tenth of its lifetime. Errors begin with doing.
func renewed(doing string, ask func(context.Context) (credentials, error), now func() time.Time) sign.KeySource {
	var (
		mu    sync.Mutex  // held during a request for a key
		have  credentials // guarded by mu
		renew time.Time   // guarded by mu
		err   error       // guarded by mu; of the last request
	)
	return func(ctx context.Context) (sign.Key, error) {
		mu.Lock()
		defer mu.Unlock()
		at := now()
		if !at.Before(renew) {
			bounded, cancel := context.WithTimeout(ctx, keyTimeout)
			defer cancel()
			next, failed := ask(bounded)
			if failed == nil && (next.AccessKeyID == "" || next.AccessKeySecret == "" || next.SecurityToken == "" || next.Expiration.IsZero()) {
				failed = errors.New("the answer has no key, or no end of it")
			}
			if failed == nil {
				have, err, renew = next, nil, at.Add(next.Expiration.Sub(at)*9/10)
				return have.key(), nil
			}
			failed = fmt.Errorf("%s: %w", doing, failed)
			if ctx.Err() != nil { // the caller canceled, so the error says nothing about the service
				return sign.Key{}, failed
			}
			err, renew = failed, at.Add(keyRetry)
		}
		if at.Before(have.Expiration) {
			return have.key(), nil
		}
		return sign.Key{}, err
	}
}

// oidc assumes a role with the token of a service account.
type oidc struct {
	config OIDC
	next   http.RoundTripper
	now    func() time.Time
}

// ask requests a key from STS (2015-04-01).
func (o oidc) ask(ctx context.Context) (credentials, error) {
	token, err := os.ReadFile(o.config.TokenFile) // the file is replaced before the token expires
	if err != nil {
		return credentials{}, err
	}
	query := url.Values{"Action": {"AssumeRoleWithOIDC"}, "Version": {"2015-04-01"}, "Format": {"JSON"}, "Timestamp": {o.now().UTC().Format(time.RFC3339)}}
	body := url.Values{
		"RoleArn": {o.config.RoleARN}, "OIDCProviderArn": {o.config.ProviderARN}, "OIDCToken": {strings.TrimSpace(string(token))}, "RoleSessionName": {sessionName},
	}
	var says struct{ Credentials credentials }
	err = fetch(ctx, o.next, http.MethodPost, o.config.Endpoint+"/?"+query.Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, body.Encode(), &says)
	return says.Credentials, err
}

// instanceRole is the role of the instance of this program.
type instanceRole struct {
	config InstanceRole
	next   http.RoundTripper
}

// ask requests a key from the metadata service of the instance, with the token that such requests need.
func (i instanceRole) ask(ctx context.Context) (says credentials, err error) {
	var token []byte
	err = fetch(ctx, i.next, http.MethodPut, i.config.Endpoint+"/latest/api/token", http.Header{"X-Aliyun-Ecs-Metadata-Token-Ttl-Seconds": {"60"}}, "", &token)
	if err == nil {
		address := i.config.Endpoint + "/latest/meta-data/ram/security-credentials/" + url.PathEscape(i.config.Name)
		err = fetch(ctx, i.next, http.MethodGet, address, http.Header{"X-Aliyun-Ecs-Metadata-Token": {string(token)}}, "", &says)
	}
	return says, err
}

// fetch makes a request, and reads the answer: JSON, or bytes. The error has only the code of a refusal, because the
// text may quote the request.
func fetch(ctx context.Context, next http.RoundTripper, method, address string, header http.Header, body string, answer any) error {
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = header
	got, err := next.RoundTrip(r)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	data, err := io.ReadAll(io.LimitReader(got.Body, maxKeyAnswer))
	if err != nil {
		return err
	}
	if got.StatusCode != http.StatusOK {
		var says struct{ Code string }
		_ = json.Unmarshal(data, &says)
		return fmt.Errorf("got %s %s", got.Status, says.Code)
	}
	if raw, ok := answer.(*[]byte); ok {
		*raw = data
		return nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("the answer is not understood: %w", quiet(err))
	}
	return nil
}
