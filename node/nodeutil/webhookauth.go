// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/kubernetes"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

const (
	tokenCacheTTL = 2 * time.Minute
	allowCacheTTL = 5 * time.Minute
	denyCacheTTL  = 30 * time.Second
	// reviewTimeout bounds one request to the API server. If the API server does not answer, a caller waits only seconds, and no goroutine
	// of the server waits for ever.
	reviewTimeout = 10 * time.Second
)

// WebhookAuthConfig is the configuration of WebhookAuth. Options may change any field.
type WebhookAuthConfig struct {
	// AuthnConfig configures the authentication of callers. Set ClientCertificateCAContentProvider to accept client certificates in
	// addition to tokens.
	AuthnConfig authenticatorfactory.DelegatingAuthenticatorConfig
	// AuthzConfig configures the authorization of callers.
	AuthzConfig authorizerfactory.DelegatingAuthorizerConfig
	// ReviewPods requires a second permission for a request about a pod: create pods/exec, pods/attach or pods/portforward, or get
	// pods/log, in its namespace. The caller is the client that connects to the node; behind kubectl that is the API server, whose identity
	// then needs these permissions in addition to its permissions on nodes.
	ReviewPods bool
}

// WebhookAuthOption changes a WebhookAuthConfig. If it returns an error, WebhookAuth fails.
type WebhookAuthOption func(*WebhookAuthConfig) error

// WebhookAuth returns an Auth that asks the API server, as a kubelet does: bearer tokens by TokenReview, permissions by SubjectAccessReview
// on the Node object nodeName (see NodeRequestAttr.Alternatives). Answers are cached: 2 minutes for tokens, 5 minutes for allowed and 30
// seconds for denied permissions. Anonymous requests are refused, and so is every uncached request while the API server does not answer.
// With a *kubernetes.Clientset it shares the connection, but not the rate limits.
//
// Client certificates are accepted only with a ClientCertificateCAContentProvider.
func WebhookAuth(client kubernetes.Interface, nodeName string, opts ...WebhookAuthOption) (Auth, error) {
	if err := checkClient(client); err != nil {
		return nil, fmt.Errorf("webhook auth for node %s: %w", nodeName, err)
	}
	if nodeName == "" {
		return nil, errors.New("webhook auth: node name is empty, so permissions cannot be asked for")
	}
	askWho, askWhether := reviewClients(client)
	cfg := WebhookAuthConfig{
		AuthnConfig: authenticatorfactory.DelegatingAuthenticatorConfig{
			Anonymous:                &apiserver.AnonymousAuthConfig{Enabled: false},
			TokenAccessReviewClient:  askWho,
			TokenAccessReviewTimeout: reviewTimeout,
			WebhookRetryBackoff:      reviewBackoff(),
			CacheTTL:                 tokenCacheTTL,
		},
		AuthzConfig: authorizerfactory.DelegatingAuthorizerConfig{
			SubjectAccessReviewClient: askWhether,
			AllowCacheTTL:             allowCacheTTL,
			DenyCacheTTL:              denyCacheTTL,
			WebhookRetryBackoff:       reviewBackoff(),
		},
	}
	for _, opt := range opts {
		if err := opt(&cfg); err != nil {
			return nil, fmt.Errorf("webhook auth for node %s: apply option: %w", nodeName, err)
		}
	}

	authn, _, err := cfg.AuthnConfig.New()
	if err != nil {
		return nil, fmt.Errorf("webhook auth for node %s: make authenticator: %w", nodeName, err)
	}
	authz, err := cfg.AuthzConfig.New()
	if err != nil {
		return nil, fmt.Errorf("webhook auth for node %s: make authorizer: %w", nodeName, err)
	}
	return &webhookAuth{
		Request:         authn,
		NodeRequestAttr: NodeRequestAttr{NodeName: nodeName},
		authz:           authz,
		reviewPods:      cfg.ReviewPods,
	}, nil
}

// reviewClients returns clients with separate rate limits. Any client of the server can cause token reviews, which would delay pod requests
// if the limits were shared.
func reviewClients(client kubernetes.Interface) (authenticationclient.AuthenticationV1Interface, authorizationclient.AuthorizationV1Interface) {
	who, whether := client.AuthenticationV1(), client.AuthorizationV1()
	if _, ok := client.(*kubernetes.Clientset); !ok {
		return who, whether // another implementation may add behavior to its methods
	}
	return authenticationclient.New(unshared(who.RESTClient(), authenticationv1.SchemeGroupVersion, reviewTimeout)),
		authorizationclient.New(unshared(whether.RESTClient(), authorizationv1.SchemeGroupVersion, reviewTimeout))
}

// reviewBackoff gives a review request five attempts within about four seconds.
func reviewBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 300 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
}

type webhookAuth struct {
	authenticator.Request
	NodeRequestAttr
	authz      authorizer.Authorizer
	reviewPods bool
}

// GetRequestPermissions implements PermissionsGetter.
func (a *webhookAuth) GetRequestPermissions(who user.Info, req *http.Request) [][]authorizer.Attributes {
	needed := [][]authorizer.Attributes{a.Alternatives(who, req)}
	if a.reviewPods {
		if permissions, more := podPermissions(who, req); more {
			needed = append(needed, permissions)
		}
	}
	return needed
}

func (a *webhookAuth) Authorize(ctx context.Context, attrs authorizer.Attributes) (authorizer.Decision, string, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	return a.authz.Authorize(ctx, attrs)
}
