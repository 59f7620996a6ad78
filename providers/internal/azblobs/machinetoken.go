// SPDX-License-Identifier: Apache-2.0

package azblobs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
)

// MachineToken is a token of the metadata service of this machine. All programs of the machine may ask this
// service.
type MachineToken struct {
	// Identity is the resource ID of a user-assigned identity of the machine.
	Identity string

	mu    sync.Mutex
	token string    // guarded by mu
	until time.Time // guarded by mu
}

// metadataURL is the URL of the metadata service. A variable overrides it, as in the SDK of Azure.
const metadataURL = "http://169.254.169.254"

// Get returns a token for Azure Storage, for Container.Token.
func (m *MachineToken) Get(ctx context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Now().Before(m.until) {
		return m.token, nil
	}
	base := os.Getenv("AZURE_POD_IDENTITY_AUTHORITY_HOST")
	if base == "" {
		base = metadataURL
	}
	q := url.Values{"api-version": {"2018-02-01"}, "resource": {Scope}, "msi_res_id": {m.Identity}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metadata/identity/oauth2/token?"+q.Encode(), nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Metadata", "true")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", fmt.Errorf("ask this machine for a token of %s: %w", m.Identity, err)
	}
	defer answer.Body.Close()
	var said struct {
		Token  string      `json:"access_token"`
		Expire json.Number `json:"expires_in"`
	}
	if answer.StatusCode != http.StatusOK || json.NewDecoder(answer.Body).Decode(&said) != nil || said.Token == "" {
		return "", fmt.Errorf("ask this machine for a token of %s: it answers %d: assign the identity to the machine", m.Identity, answer.StatusCode)
	}
	seconds, _ := said.Expire.Int64() // a token without a lifetime is requested again for each use
	m.token, m.until = said.Token, time.Now().Add(time.Duration(seconds)*time.Second-5*time.Minute)
	return m.token, nil
}
