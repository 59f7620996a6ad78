// SPDX-License-Identifier: Apache-2.0

package certapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

const (
	group = "certificates.k8s.io"
	// answerTimeout bounds one request to the API server.
	answerTimeout = 30 * time.Second
)

// versions are the supported versions, by decreasing preference.
var versions = []string{"v1", "v1beta1"}

// API sends requests to one API server. It is safe for concurrent use.
type API struct {
	client rest.Interface

	mu     sync.Mutex
	served map[string]string // the served version of a resource; guarded by mu
}

// New returns an API on client. It sends no request.
func New(client rest.Interface) *API { return &API{client: client, served: map[string]string{}} }

// servedVersion returns the API server's version of a resource.
func (a *API) servedVersion(ctx context.Context, resource string) (string, error) {
	a.mu.Lock()
	known := a.served[resource]
	a.mu.Unlock()
	if known != "" {
		return known, nil
	}
	for _, version := range versions {
		var list struct {
			Resources []struct {
				Name string `json:"name"`
			} `json:"resources"`
		}
		err := a.sendCall(ctx, call{verb: http.MethodGet, path: []string{version}}, &list)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("find out whether the API server has %s.%s: %w", resource, group, err)
		}
		for i := range list.Resources {
			if list.Resources[i].Name == resource {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.served[resource] = version
				return version, nil
			}
		}
	}
	return "", fmt.Errorf("the API server does not serve %s.%s in %s", resource, group, strings.Join(versions, " or "))
}

// forgetVersion drops the cached version of a resource after a not-found error, so that the next request discovers it again.
func (a *API) forgetVersion(resource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.served, resource)
}

// call is one request. Its path is relative to the path of the group.
type call struct {
	verb   string
	path   []string
	params map[string]string // empty values are omitted
	body   any               // nil for none
}

// callServed makes a call for a resource in its served version. The path of the call is relative to the path of that version.
func (a *API) callServed(ctx context.Context, resource string, c call, into any) error {
	version, err := a.servedVersion(ctx, resource)
	if err != nil {
		return err
	}
	return a.callVersion(ctx, version, resource, c, into)
}

// callVersion makes a call for a resource in the given version.
func (a *API) callVersion(ctx context.Context, version, resource string, c call, into any) error {
	c.path = slices.Concat([]string{version}, c.path, []string{resource})
	err := a.sendCall(ctx, c, into)
	if apierrors.IsNotFound(err) {
		a.forgetVersion(resource)
	}
	return err
}

func (a *API) sendCall(ctx context.Context, c call, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	request := a.client.Verb(c.verb).AbsPath(slices.Concat([]string{"/apis", group}, c.path)...).SetHeader("Accept", "application/json")
	for key, value := range c.params {
		if value != "" {
			request = request.Param(key, value)
		}
	}
	if c.body != nil {
		raw, err := json.Marshal(c.body)
		if err != nil {
			return err
		}
		request = request.Body(raw).SetHeader("Content-Type", "application/json")
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	raw, err := result.Raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read the answer of the API server: %w", err)
	}
	return nil
}
