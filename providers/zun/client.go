// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	gophercloudopenstack "github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/openstack"
)

const (
	// microversion is the microversion of every request. Zun supports it since 2020, and has no newer version.
	microversion = "1.40"
	// callTimeout bounds a request and its response. For a host that is down, Zun responds after 60 s.
	callTimeout = 90 * time.Second
	// scarceFor is the wait after a refusal by the quota.
	scarceFor = 30 * time.Second
	// throttledFor is the wait after a proxy of Zun throttles without a retry delay.
	throttledFor = 10 * time.Second
)

// client makes requests to Zun in one project.
type client struct{ openstack.Client }

func newClient(config Config, next http.RoundTripper) *client {
	return &client{openstack.Client{
		Name: "Zun", Type: "container", Microversion: microversion, Login: config.readLogin, Find: findZun,
		HTTP: http.Client{Transport: next, CheckRedirect: openstack.NoRedirect},
	}}
}

// findZun finds Zun in the catalog. Some catalogs omit the version in its address.
func findZun(provider *gophercloud.ProviderClient, where gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error) {
	service, err := gophercloudopenstack.NewContainerV1(provider, where)
	if err == nil && !strings.HasSuffix(service.Endpoint, "/v1/") {
		service.Endpoint += "v1/"
	}
	return service, err
}

// readLogin returns the credentials of a cloud or of an identity.
func (c Config) readLogin(ctx context.Context) (l openstack.Login, err error) {
	if c.Cloud != "" {
		return openstack.Cloud{Name: c.Cloud, File: c.CloudsFile, Region: c.Region, Interface: c.Interface, CAFile: c.CAFile}.Login()
	}
	i := c.Identity
	l.Endpoint = gophercloud.EndpointOpts{Region: c.Region, Availability: gophercloud.Availability(cmp.Or(c.Interface, "public"))}
	l.Credentials.IdentityEndpoint = i.AuthURL
	if i.ApplicationCredentialID != "" {
		l.Credentials.ApplicationCredentialID, l.Credentials.ApplicationCredentialSecret = i.ApplicationCredentialID, i.ApplicationCredentialSecret.Value(ctx)
		return l, nil
	}
	l.Credentials.Username, l.Credentials.Password, l.Credentials.DomainID = i.Username, i.Password.Value(ctx), i.UserDomainID
	if i.UserDomainID == "" {
		l.Credentials.DomainName = cmp.Or(i.UserDomainName, "Default")
	}
	l.Credentials.TenantID, l.Credentials.TenantName = i.ProjectID, i.ProjectName // the project is in the domain of the user
	if i.ProjectID == "" && i.ProjectDomainName != "" {
		l.Credentials.Scope = &gophercloud.AuthScope{ProjectName: i.ProjectName, DomainName: i.ProjectDomainName}
	}
	return l, nil
}

// call makes a request to Zun, and reads the response: see openstack.Client.Call. Errors name the action.
func (c *client) call(ctx context.Context, action, method, path string, query url.Values, body, answer any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	header, err := c.Call(ctx, method, path, query, body, answer)
	if err != nil {
		err = explainRefusal(action, err)
	}
	return header, err
}

// explainRefusal returns the error of an action with advice. Its kind is not-found for a missing object, and invalid-input for a request that Zun
// will never accept.
func explainRefusal(action string, err error) error {
	err = fmt.Errorf("%s: %w", action, err)
	var refusal *openstack.Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	switch {
	case refusal.Status == http.StatusTooManyRequests:
		return errdefs.RetryAfter(err, max(refusal.After, throttledFor))
	case refusal.Status == http.StatusForbidden && strings.Contains(strings.ToLower(refusal.Detail), "quota"):
		return errdefs.RetryAfter(fmt.Errorf("%w: the quota of the project is used up: ask for more, or lower the capacity of the node", err), scarceFor)
	case refusal.Status == http.StatusForbidden:
		return fmt.Errorf("%w: the policy of Zun does not let this user do it", err)
	case refusal.Status == http.StatusNotAcceptable:
		return fmt.Errorf("%w: this Zun does not know microversion %s, which it has since OpenStack Ussuri: upgrade it", err, microversion)
	case refusal.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w: look at the credentials, and at authURL", err)
	case refusal.After > 0:
		return errdefs.RetryAfter(err, refusal.After)
	case refusal.Status == http.StatusNotFound:
		return errdefs.AsNotFound(err)
	case refusal.Status == http.StatusBadRequest:
		return errdefs.AsInvalidInput(err)
	}
	return err
}
