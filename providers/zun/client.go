// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

const (
	// microversion is the microversion of every request. Zun has had it since 2020, and has no newer one.
	microversion = "1.40"
	// callTimeout bounds a request with its answer. Zun answers after 60 s for a host that is down.
	callTimeout = 90 * time.Second
	// scarceFor is how long to wait without quota.
	scarceFor = 30 * time.Second
	// throttledFor is how long to wait when a proxy of Zun throttles without a delay in the answer.
	throttledFor = 10 * time.Second
)

// client is Zun in one project.
type client struct {
	config Config
	http   http.Client

	mu      sync.Mutex // held while somebody logs in
	service *gophercloud.ServiceClient
}

// credentials returns the credentials, the endpoint and the TLS settings. They are read again for each login.
// The TLS settings are nil if there are none.
func (c Config) credentials(ctx context.Context) (who gophercloud.AuthOptions, where gophercloud.EndpointOpts, secure *tls.Config, err error) {
	if c.Cloud != "" {
		options := []clouds.ParseOption{clouds.WithCloudName(c.Cloud)}
		for _, o := range []struct {
			text string
			as   func(string) clouds.ParseOption
		}{{c.Region, clouds.WithRegion}, {c.Interface, clouds.WithEndpointType}, {c.CAFile, clouds.WithCACertPath}} {
			if o.text != "" {
				options = append(options, o.as(o.text))
			}
		}
		if c.CloudsFile != "" {
			options = append(options, clouds.WithLocations(c.CloudsFile))
		}
		return clouds.Parse(options...)
	}
	i := c.Identity
	who.IdentityEndpoint = i.AuthURL
	if i.ApplicationCredentialID != "" {
		who.ApplicationCredentialID, who.ApplicationCredentialSecret = i.ApplicationCredentialID, i.ApplicationCredentialSecret.Value(ctx)
	} else {
		who.Username, who.Password, who.DomainID = i.Username, i.Password.Value(ctx), i.UserDomainID
		if who.DomainID == "" {
			who.DomainName = cmp.Or(i.UserDomainName, "Default")
		}
		who.Scope = &gophercloud.AuthScope{ProjectID: i.ProjectID}
		if i.ProjectID == "" {
			who.Scope.ProjectName, who.Scope.DomainName = i.ProjectName, cmp.Or(i.ProjectDomainName, who.DomainName)
			if who.Scope.DomainName == "" {
				who.Scope.DomainID = who.DomainID
			}
		}
	}
	return who, gophercloud.EndpointOpts{Region: c.Region, Availability: gophercloud.Availability(cmp.Or(c.Interface, "public"))}, nil, nil
}

// login returns Zun with a token. It reuses a service other than old.
func (c *client) login(ctx context.Context, old *gophercloud.ServiceClient) (*gophercloud.ServiceClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.service != nil && c.service != old {
		return c.service, nil
	}
	who, where, _, err := c.config.credentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the credentials: %w", err)
	}
	provider, err := openstack.NewClient(who.IdentityEndpoint)
	if err != nil {
		return nil, fmt.Errorf("authURL %q: %w", who.IdentityEndpoint, err)
	}
	provider.HTTPClient = c.http
	if err := openstack.Authenticate(ctx, provider, who); err != nil {
		return nil, fmt.Errorf("log in to Keystone at %s: %w", who.IdentityEndpoint, said(toKeystone, err))
	}
	service, err := openstack.NewContainerV1(provider, where)
	if err != nil {
		return nil, fmt.Errorf("find Zun in the catalog of Keystone, as a service of the type container: %w: look at region %q and interface", said(toKeystone, err), where.Region)
	}
	service.Type, service.Microversion = "container", microversion
	if !strings.HasSuffix(service.Endpoint, "/v1/") {
		service.Endpoint += "v1/"
	}
	c.service = service
	return service, nil
}

// call makes a request to Zun, and reads the answer. Errors name the action.
func (c *client) call(ctx context.Context, action, method, path string, query url.Values, body, answer any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var old *gophercloud.ServiceClient
	for {
		service, err := c.login(ctx, old)
		if err != nil {
			return nil, err
		}
		where := service.Endpoint + path
		if len(query) > 0 {
			where += "?" + query.Encode()
		}
		response, err := service.Request(ctx, method, where, &gophercloud.RequestOpts{ //nolint:bodyclose // gophercloud closes it
			JSONBody: body, JSONResponse: answer, OkCodes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent},
		})
		switch {
		case gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) && old == nil: // the token has ended
			old = service
		case err != nil:
			return nil, said(action, err)
		default:
			return response.Header, nil
		}
	}
}

// apiError is the answer of Zun to a request that failed.
type apiError struct {
	action string
	status int
	detail string
	hint   string
	id     string
}

// Error returns the failed action and the reason.
func (e *apiError) Error() string {
	text := strings.TrimPrefix(e.action+": ", ": ") + strings.TrimSpace(strconv.Itoa(e.status)+" "+http.StatusText(e.status))
	for _, more := range []string{e.detail, e.hint} {
		if more != "" {
			text += ": " + more
		}
	}
	if e.id != "" {
		text += " (request " + e.id + ")"
	}
	return text
}

// toKeystone is the action of requests to Keystone.
const toKeystone = ""

// said returns the error of a request without its address and body, which may have credentials. Its kind is
// not-found for a thing that Zun lacks, and invalid-input for a request that Zun will never do.
func said(action string, err error) error {
	var answer gophercloud.ErrUnexpectedResponseCode
	var failed *url.Error
	switch {
	case errors.As(err, &answer):
	case errors.As(err, &failed):
		return fmt.Errorf("%s: %w", cmp.Or(action, failed.Op), failed.Err)
	default:
		return err
	}
	e := &apiError{action: action, status: answer.Actual, id: answer.ResponseHeader.Get("X-Openstack-Request-Id")}
	var body struct {
		Errors []struct{ Detail, Title string }
		Error  struct{ Message string } // of Keystone
	}
	_ = json.Unmarshal(answer.Body, &body) // one that is no JSON says nothing
	e.detail = body.Error.Message
	if len(body.Errors) > 0 {
		e.detail = cmp.Or(body.Errors[0].Detail, body.Errors[0].Title)
	}
	after, _ := strconv.Atoi(answer.ResponseHeader.Get("Retry-After"))
	wait := time.Duration(after) * time.Second
	switch {
	case e.status == http.StatusTooManyRequests:
		return errdefs.RetryAfter(e, max(wait, throttledFor))
	case e.status == http.StatusForbidden && strings.Contains(strings.ToLower(e.detail), "quota"):
		e.hint = "the quota of the project is used up: ask for more, or lower the capacity of the node"
		return errdefs.RetryAfter(e, scarceFor)
	case e.status == http.StatusForbidden:
		e.hint = "the policy of Zun does not let this user do it"
	case e.status == http.StatusNotAcceptable:
		e.hint = "this Zun does not know microversion " + microversion + ", which it has since OpenStack Ussuri: upgrade it"
	case e.status == http.StatusUnauthorized, action == toKeystone && e.status == http.StatusNotFound: // no such application credential
		e.hint = "look at the credentials, and at authURL"
	case wait > 0:
		return errdefs.RetryAfter(e, wait)
	case action == toKeystone: // it tells nothing about containers
	case e.status == http.StatusNotFound:
		return errdefs.AsNotFound(e)
	case e.status == http.StatusBadRequest:
		return errdefs.AsInvalidInput(e)
	}
	return e
}

// statusOf returns the status of an error answer, or 0 if there was no answer.
func statusOf(err error) int {
	var e *apiError
	if errors.As(err, &e) {
		return e.status
	}
	return 0
}
