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
	// maxKeyAnswer is how many bytes of the answer are read.
	maxKeyAnswer = 1 << 20
	// sessionName is the name of the session at STS.
	sessionName = "virtual-kubelet"
)

// keys returns the source of the key that signs requests.
func (c Config) keys(next http.RoundTripper, now func() time.Time) sign.KeySource {
	switch {
	case c.OIDC.RoleARN != "":
		return renewed(oidc{c.OIDC, next, now}.ask, now)
	case c.InstanceRole.Name != "":
		if t, ok := next.(*http.Transport); ok { // a proxy has another instance's metadata, or reads the key
			t = t.Clone()
			t.Proxy = nil
			next = t
		}
		return renewed(instanceRole{c.InstanceRole, next}.ask, now)
	}
	return func(ctx context.Context) (sign.Key, error) { // a changed file is read again
		return sign.Key{Access: c.AccessKeyID.Value(ctx), Secret: c.AccessKeySecret.Value(ctx), Token: c.SecurityToken.Value(ctx)}, nil
	}
}

// temporary is a key that expires.
type temporary struct {
	key  sign.Key
	ends time.Time
}

// renewed keeps a temporary key, and asks for the next one in the last tenth of its life.
func renewed(ask func(context.Context) (temporary, error), now func() time.Time) sign.KeySource {
	var (
		mu    sync.Mutex // held while a key is asked for
		have  temporary  // guarded by mu
		renew time.Time  // guarded by mu
		err   error      // guarded by mu; why the last one could not be had
	)
	return func(ctx context.Context) (sign.Key, error) {
		mu.Lock()
		defer mu.Unlock()
		at := now()
		if at.Before(renew) {
			if at.Before(have.ends) {
				return have.key, nil
			}
			return sign.Key{}, err
		}
		bounded, cancel := context.WithTimeout(ctx, keyTimeout)
		defer cancel()
		next, failed := ask(bounded)
		switch {
		case failed == nil:
			have, err, renew = next, nil, at.Add(next.ends.Sub(at)*9/10)
			return have.key, nil
		case ctx.Err() != nil: // the caller has left, so the error says nothing about the service
			return sign.Key{}, failed
		}
		err, renew = failed, at.Add(keyRetry)
		if at.Before(have.ends) {
			return have.key, nil
		}
		return sign.Key{}, err
	}
}

// credentials is a key in the format of the services of Alibaba Cloud.
type credentials struct {
	AccessKeyID     string `json:"AccessKeyId"`
	AccessKeySecret string
	SecurityToken   string
	Expiration      time.Time
}

func (c credentials) temporary() (temporary, error) {
	if c.AccessKeyID == "" || c.AccessKeySecret == "" || c.SecurityToken == "" || c.Expiration.IsZero() {
		return temporary{}, errors.New("the answer has no key, or no end of it")
	}
	return temporary{sign.Key{Access: c.AccessKeyID, Secret: c.AccessKeySecret, Token: c.SecurityToken}, c.Expiration}, nil
}

// oidc takes a role with the token of a service account.
type oidc struct {
	config OIDC
	next   http.RoundTripper
	now    func() time.Time
}

// ask asks STS (2015-04-01) for a key.
func (o oidc) ask(ctx context.Context) (temporary, error) {
	fail := func(err error) (temporary, error) {
		return temporary{}, fmt.Errorf("take the role %s by OIDC at %s: %w", o.config.RoleARN, o.config.Endpoint, err)
	}
	token, err := os.ReadFile(o.config.TokenFile) // the file is replaced before the token expires
	if err != nil {
		return fail(err)
	}
	query := url.Values{"Action": {"AssumeRoleWithOIDC"}, "Version": {"2015-04-01"}, "Format": {"JSON"}, "Timestamp": {o.now().UTC().Format(time.RFC3339)}}
	body := url.Values{
		"RoleArn": {o.config.RoleARN}, "OIDCProviderArn": {o.config.ProviderARN}, "OIDCToken": {strings.TrimSpace(string(token))}, "RoleSessionName": {sessionName},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.config.Endpoint+"/?"+query.Encode(), strings.NewReader(body.Encode()))
	if err != nil {
		return fail(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var says struct{ Credentials credentials }
	if err := fetch(o.next, r, &says); err != nil {
		return fail(err)
	}
	got, err := says.Credentials.temporary()
	if err != nil {
		return fail(err)
	}
	return got, nil
}

// instanceRole is the role of the instance of this program.
type instanceRole struct {
	config InstanceRole
	next   http.RoundTripper
}

// ask asks the metadata service of the instance for a key, with the token that such requests need.
func (i instanceRole) ask(ctx context.Context) (temporary, error) {
	fail := func(err error) (temporary, error) {
		return temporary{}, fmt.Errorf("ask %s for the key of role %s of this instance: %w", i.config.Endpoint, i.config.Name, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, i.config.Endpoint+"/latest/api/token", nil)
	if err != nil {
		return fail(err)
	}
	r.Header.Set("X-Aliyun-Ecs-Metadata-Token-Ttl-Seconds", "60")
	var token []byte
	if err := fetch(i.next, r, &token); err != nil {
		return fail(err)
	}
	r, err = http.NewRequestWithContext(ctx, http.MethodGet, i.config.Endpoint+"/latest/meta-data/ram/security-credentials/"+url.PathEscape(i.config.Name), nil)
	if err != nil {
		return fail(err)
	}
	r.Header.Set("X-Aliyun-Ecs-Metadata-Token", string(token))
	var says credentials
	if err := fetch(i.next, r, &says); err != nil {
		return fail(err)
	}
	got, err := says.temporary()
	if err != nil {
		return fail(err)
	}
	return got, nil
}

// fetch reads an answer: JSON, or bytes. The error has only the code of a refusal, because the text may quote
// the request.
func fetch(next http.RoundTripper, r *http.Request, answer any) error {
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
