// SPDX-License-Identifier: Apache-2.0

package azlogin

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// callTimeout bounds a request and its response.
const callTimeout = time.Minute

// IdentityID matches the resource ID of a user-assigned identity. Azure ignores the case of the ID.
var IdentityID = regexp.MustCompile(`(?i)^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.ManagedIdentity/userAssignedIdentities/[^/]+$`)

// Credentials are a service principal with a secret, a workload identity with a token of a service account, or a managed identity.
type Credentials struct {
	TenantID string `json:"tenantID,omitempty" env:"AZURE_TENANT_ID"`
	ClientID string `json:"clientID,omitempty" env:"AZURE_CLIENT_ID"`
	// ClientSecret is the secret of a service principal.
	ClientSecret config.Secret `json:"clientSecret,omitzero" env:"AZURE_CLIENT_SECRET"`
	// TokenFile has the token of a service account, for a workload identity.
	TokenFile string `json:"tokenFile,omitempty" env:"AZURE_FEDERATED_TOKEN_FILE"`
	// IdentityClientID selects the managed identity on a machine with several.
	IdentityClientID string `json:"identityClientID,omitempty" env:"VIRTUALNODE_USER_IDENTITY_CLIENTID"`
	// File is an azure.json of AKS for missing values: subscription, resource group, region, and the fields
	// above.
	File string `json:"file,omitempty" env:"AKS_CREDENTIAL_LOCATION,AZURE_AUTH_LOCATION"`
}

// Check reports impossible settings to problem.
func (k Credentials) Check(problem func(string, ...any)) {
	if k.ClientSecret.IsSet() && k.TokenFile != "" {
		problem("credentials: clientSecret and tokenFile: are two: remove one")
	}
	if (k.ClientSecret.IsSet() || k.TokenFile != "") && (k.TenantID == "" || k.ClientID == "") {
		problem("credentials: tenantID or clientID is missing")
	}
}

// HTTPClient returns the client for requests, with the certificate authorities of a file, or with those of this
// machine for "".
func HTTPClient(caFile string) (*http.Client, error) {
	t, err := config.Transport(caFile)
	if err != nil {
		return nil, fmt.Errorf("cloud.caFile: %w", err)
	}
	return &http.Client{
		Transport: t, Timeout: callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a redirect would forward the token
	}, nil
}

// PublicAuthority is the built-in authority of the SDK. For any other authority, the SDK would query this one.
const PublicAuthority = "https://login.microsoftonline.com"

// Credential returns a credential that gets tokens from the authority, given by its URL. Credential itself makes
// no request.
func (k Credentials) Credential(authority string, http *http.Client) (azcore.TokenCredential, error) {
	options := azcore.ClientOptions{
		Cloud: cloud.Configuration{ActiveDirectoryAuthorityHost: authority}, Transport: http, Retry: policy.RetryOptions{MaxRetries: -1},
	}
	ownAuthority := authority != PublicAuthority
	var out azcore.TokenCredential
	var err error
	switch {
	case k.ClientSecret.IsSet():
		return &principal{
			tenant: k.TenantID, client: k.ClientID, secret: k.ClientSecret,
			options: azidentity.ClientSecretCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: ownAuthority},
		}, nil
	case k.TokenFile != "": // the SDK reads the file again when its token is old
		out, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientOptions: options, TenantID: k.TenantID, ClientID: k.ClientID, TokenFilePath: k.TokenFile, DisableInstanceDiscovery: ownAuthority,
		})
	default:
		managed := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
		if k.IdentityClientID != "" {
			managed.ID = azidentity.ClientID(k.IdentityClientID)
		}
		out, err = azidentity.NewManagedIdentityCredential(managed)
	}
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	return out, nil
}

// principal is a service principal. Its secret may be replaced while the provider runs.
type principal struct {
	tenant, client string
	secret         config.Secret
	options        azidentity.ClientSecretCredentialOptions

	mu   sync.Mutex
	with string                 // guarded by mu; the secret of made
	made azcore.TokenCredential // guarded by mu
}

// GetToken implements azcore.TokenCredential.
func (p *principal) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	made, err := p.credentialFor(p.secret.Value(ctx))
	if err != nil {
		return azcore.AccessToken{}, err
	}
	return made.GetToken(ctx, options)
}

// credentialFor returns the credential for the secret.
func (p *principal) credentialFor(secret string) (azcore.TokenCredential, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made != nil && p.with == secret {
		return p.made, nil
	}
	made, err := azidentity.NewClientSecretCredential(p.tenant, p.client, secret, &p.options)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	p.with, p.made = secret, made
	return made, nil
}
