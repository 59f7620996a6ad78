// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// publicAuthority is the one that the SDK knows by itself. It would ask it about each other one.
const publicAuthority = "https://login.microsoftonline.com"

// credential is what the configuration says; nothing is asked yet.
func (c Config) credential(http *http.Client) (azcore.TokenCredential, error) {
	k := c.Credentials
	options := azcore.ClientOptions{Cloud: c.Cloud.sdk(), Transport: http, Retry: policy.RetryOptions{MaxRetries: -1}}
	ownAuthority := c.Cloud.Authority != publicAuthority
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
		return nil, fmt.Errorf("aci provider: credentials: %w", err)
	}
	return out, nil
}

// principal is a service principal whose secret may be replaced while the provider runs.
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
	made, err := p.now(p.secret.Value(ctx))
	if err != nil {
		return azcore.AccessToken{}, err
	}
	return made.GetToken(ctx, options)
}

// now is the credential with that secret.
func (p *principal) now(secret string) (azcore.TokenCredential, error) {
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
