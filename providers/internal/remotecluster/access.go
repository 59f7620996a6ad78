// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// Access returns the client configuration of a context in a kubeconfig, or of its current context if named is
// empty. client-go rereads the files that the kubeconfig refers to, but not the kubeconfig itself. Access rereads
// its token, as long as the server stays the same. Everything else is read once.
func Access(kubeconfig, named string) (*rest.Config, error) {
	access, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: named}).ClientConfig()
	if err != nil || access.BearerToken == "" || access.BearerTokenFile != "" {
		return access, err
	}
	where, err := json.Marshal(map[string]string{"file": kubeconfig})
	if err != nil {
		return nil, err
	}
	t := &keptToken{context: named, token: access.BearerToken}
	if err := t.file.UnmarshalJSON(where); err != nil {
		return nil, err
	}
	t.seen = t.file.Value(context.Background())
	if loaded, err := clientcmd.Load([]byte(t.seen)); err == nil {
		t.server, _ = t.tokenIn(loaded)
	}
	access.BearerToken = ""
	access.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+t.currentToken(r.Context()))
			return next.RoundTrip(r)
		})
	})
	return access, nil
}

// keptToken is the token in a kubeconfig.
type keptToken struct {
	file    config.Secret
	context string
	server  string // the server of the token

	mu    sync.Mutex
	seen  string // guarded by mu; the last content of the file
	token string // guarded by mu; the last usable token
}

func (t *keptToken) currentToken(ctx context.Context) string {
	content := t.file.Value(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if content == t.seen {
		return t.token
	}
	t.seen = content
	loaded, err := clientcmd.Load([]byte(content))
	if err != nil { // do not log the error: it may quote the file
		log.G(ctx).Warn("The kubeconfig of the remote cluster is not understood any more: its last token stays in use")
		return t.token
	}
	switch server, token := t.tokenIn(loaded); {
	case server != t.server: // the token is only for the first server
		log.G(ctx).Warn("The kubeconfig of the remote cluster has another server now: restart the node to use it; its last token stays in use")
	case token == "":
		log.G(ctx).Warn("The kubeconfig of the remote cluster has no token any more: restart the node to use what it has; its last token stays in use")
	default:
		t.token = token
	}
	return t.token
}

// tokenIn returns the server and the token of a kubeconfig, or "".
func (t *keptToken) tokenIn(loaded *clientcmdapi.Config) (server, token string) {
	name := t.context
	if name == "" {
		name = loaded.CurrentContext
	}
	of := loaded.Contexts[name]
	if of == nil {
		return "", ""
	}
	if cluster := loaded.Clusters[of.Cluster]; cluster != nil {
		server = cluster.Server
	}
	if user := loaded.AuthInfos[of.AuthInfo]; user != nil {
		token = user.Token
	}
	return server, token
}
