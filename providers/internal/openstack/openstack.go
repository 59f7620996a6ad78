// SPDX-License-Identifier: Apache-2.0

// Package openstack makes requests to a service of OpenStack, with tokens of Keystone.
//
// The guarantee: the error of a failed login is never a Refusal, so it is not mistaken for a response of the service. No error has the address or the
// body of a request, which may have credentials.
//
// Note: the credentials are read again for each login, so they may change while the process runs. If the token expires during a request, the
// client logs in again and repeats the request.
package openstack

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Login has the credentials, the endpoint and the TLS settings of a cloud. TLS is nil for the default TLS settings.
type Login struct {
	Credentials gophercloud.AuthOptions
	Endpoint    gophercloud.EndpointOpts
	TLS         *tls.Config
}

// Cloud selects a cloud of a clouds.yaml. Empty fields take the values of the file, of the variables of OpenStack's clients, or the defaults of those
// clients.
type Cloud struct{ Name, File, Region, Interface, CAFile string }

// Login reads the credentials of the cloud.
func (c Cloud) Login() (l Login, err error) {
	var options []clouds.ParseOption
	for _, o := range []struct {
		text string
		as   func(string) clouds.ParseOption
	}{{c.Name, clouds.WithCloudName}, {c.Region, clouds.WithRegion}, {c.Interface, clouds.WithEndpointType}, {c.CAFile, clouds.WithCACertPath}} {
		if o.text != "" {
			options = append(options, o.as(o.text))
		}
	}
	if c.File != "" {
		options = append(options, clouds.WithLocations(c.File))
	}
	l.Credentials, l.Endpoint, l.TLS, err = clouds.Parse(options...)
	return l, err
}

// Client makes requests to one service of a project.
type Client struct {
	// Name is the name of the service in errors, and Type its type in the header of microversions.
	Name, Type string
	// Microversion is the microversion of every request.
	Microversion string
	// Find finds the service in the catalog.
	Find func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)
	// Login returns the credentials for a login.
	Login func(context.Context) (Login, error)
	// HTTP makes the requests. It must not follow redirects, which would forward the token.
	HTTP http.Client

	mu      sync.Mutex // held during a login
	service *gophercloud.ServiceClient
}

// NoRedirect is CheckRedirect of a Client's HTTP.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Refusal is an error response of the service or of Keystone.
type Refusal struct {
	Status int
	Detail string        // the message of the service
	ID     string        // of the request
	After  time.Duration // when to retry; 0: the service does not say
}

// Error returns the status and the reason.
func (r *Refusal) Error() string {
	text := strconv.Itoa(r.Status) + " " + http.StatusText(r.Status)
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	if r.ID != "" {
		text += " (request " + r.ID + ")"
	}
	return text
}

// StatusOf returns the status of the service's answer, or 0 if there was none.
func StatusOf(err error) int {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Status
	}
	return 0
}

// loginError is a failed login. It has no kind.
type loginError struct{ text string }

// Error returns the reason.
func (e *loginError) Error() string { return e.text }

// NotSent reports whether the service has certainly not received the request of an error.
func NotSent(err error) bool {
	var login *loginError
	var dial *net.OpError
	return errors.As(err, &login) || errors.As(err, &dial) && dial.Op == "dial"
}

// Call makes a request and decodes the response into out: a pointer for its JSON, a func(io.Reader) error, or nil.
func (c *Client) Call(ctx context.Context, method, path string, query url.Values, in, out any) (http.Header, error) {
	var old *gophercloud.ServiceClient
	for {
		service, err := c.logIn(ctx, old)
		if err != nil {
			return nil, err
		}
		where := service.Endpoint + path
		if len(query) > 0 {
			where += "?" + query.Encode()
		}
		options := gophercloud.RequestOpts{JSONBody: in, OkCodes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent}}
		read, reads := out.(func(io.Reader) error)
		if options.KeepResponseBody = reads; !reads {
			options.JSONResponse = out
		}
		response, err := service.Request(ctx, method, where, &options)
		switch {
		case gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) && old == nil: // the token has expired
			old = service
		case err != nil:
			return nil, explain(err)
		case reads:
			defer response.Body.Close()
			return response.Header, read(response.Body)
		default:
			return response.Header, nil
		}
	}
}

// logIn returns the service with a token. It reuses the current service unless that is old.
func (c *Client) logIn(ctx context.Context, old *gophercloud.ServiceClient) (*gophercloud.ServiceClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.service != nil && c.service != old {
		return c.service, nil
	}
	with, err := c.Login(ctx)
	if err != nil {
		return nil, &loginError{"read the credentials: " + err.Error()}
	}
	at := with.Credentials.IdentityEndpoint
	provider, err := openstack.NewClient(at)
	if err != nil {
		return nil, &loginError{fmt.Sprintf("the address of Keystone, %q: %s", at, err)}
	}
	provider.HTTPClient = c.HTTP
	if err := openstack.Authenticate(ctx, provider, with.Credentials); err != nil {
		return nil, refuseLogin("log in to Keystone at "+at, err)
	}
	service, err := c.Find(provider, with.Endpoint)
	if err != nil {
		return nil, refuseLogin("find "+c.Name+" in the catalog of Keystone", fmt.Errorf("%w: look at region %q and interface", err, with.Endpoint.Region))
	}
	service.Type, service.Microversion = c.Type, c.Microversion
	c.service = service
	return service, nil
}

// throttledFor is the minimum pause after Keystone throttles a login.
const throttledFor = 10 * time.Second

// refuseLogin returns the error of a failed login. Keystone answers 404 for a deleted application credential, which must not look like a missing
// object of the service. A login without an answer keeps its cause.
func refuseLogin(action string, err error) error {
	err = explain(err)
	var r *Refusal
	if !errors.As(err, &r) {
		return fmt.Errorf("%s: %w", action, err)
	}
	failed := error(&loginError{action + ": " + err.Error() + ": look at the credentials, and at the address of Keystone"})
	switch {
	case r.Status == http.StatusTooManyRequests:
		failed = errdefs.RetryAfter(failed, max(r.After, throttledFor))
	case r.After > 0:
		failed = errdefs.RetryAfter(failed, r.After)
	}
	return failed
}

// explain returns the error of a request without its address and body.
func explain(err error) error {
	var answer gophercloud.ErrUnexpectedResponseCode
	var failed *url.Error
	switch {
	case errors.As(err, &answer):
	case errors.As(err, &failed):
		return fmt.Errorf("%s: %w", failed.Op, failed.Err)
	default:
		return err
	}
	after, _ := strconv.Atoi(answer.ResponseHeader.Get("Retry-After"))
	return &Refusal{
		Status: answer.Actual, Detail: detailOf(answer.Body), After: time.Duration(after) * time.Second, ID: answer.ResponseHeader.Get("X-Openstack-Request-Id"),
	}
}

// detailOf returns the reason in an error response. The response has a list of errors, or an object named after the kind of the error. Other formats
// give no reason.
func detailOf(body []byte) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields)
	for name, field := range fields {
		var list []struct{ Detail, Title string }
		var one struct{ Message string }
		switch {
		case name == "errors" && json.Unmarshal(field, &list) == nil && len(list) > 0:
			return cmp.Or(list[0].Detail, list[0].Title)
		case name != "errors" && json.Unmarshal(field, &one) == nil && one.Message != "":
			return one.Message
		}
	}
	return ""
}
