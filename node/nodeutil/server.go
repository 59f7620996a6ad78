// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 90 * time.Second
	maxHeaderBytes    = 64 << 10
	// closeTimeout bounds the shutdown of the server, even if a handler ignores its context.
	closeTimeout = 4 * time.Second
)

// server is the HTTPS server of a node. It exists only if the program has set
// both Handler and TLSConfig.
type server struct {
	addr      string
	tls       *tls.Config
	handler   http.Handler
	routeAuth Auth // nil: the routes are not authenticated
	port      atomic.Int32
}

// newServer returns the server for cfg, or nil.
func newServer(cfg *NodeConfig, client kubernetes.Interface, nodeName string) (*server, error) {
	if cfg.TLSConfig == nil || cfg.Handler == nil {
		return nil, nil
	}
	if err := checkTLS(cfg.TLSConfig); err != nil {
		return nil, err
	}
	if cfg.reviewPods && (cfg.unauthenticated || authenticates(cfg.Handler)) {
		return nil, errors.New("WithPodReviews is for the authentication that NewNode adds, and there is another or none: set WebhookAuthConfig.ReviewPods of the Auth in Handler instead")
	}
	auth, err := defaultAuth(cfg, client, nodeName)
	if err != nil {
		return nil, fmt.Errorf("authentication of the server: %w", err)
	}
	handler := withServerAuth(auth, cfg)
	if cfg.mux != nil {
		handler = plainPaths(auth, handler)
	}
	return &server{
		addr:      cfg.HTTPListenAddr,
		tls:       cfg.TLSConfig,
		handler:   handler,
		routeAuth: auth,
	}, nil
}

// checkTLS returns an error for mistakes that would fail every handshake.
func checkTLS(cfg *tls.Config) error {
	if !hasCertificate(cfg) {
		return errors.New("TLSConfig has no serving certificate; add one with WithKeyPairFiles, set GetCertificate, or use WithServingCertificateRequests")
	}
	return nil
}

// listen opens the port. Connections wait in the kernel until serve accepts them within the limits.
func (s *server) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.addr)
	if err != nil {
		return nil, fmt.Errorf("listen for requests to the node: %w", err)
	}
	if addr, ok := l.Addr().(*net.TCPAddr); ok {
		s.port.Store(int32(addr.Port)) //nolint:gosec // a port fits
	}
	return limitConns(ctx, l), nil
}

// serve answers requests until ctx ends, and then returns nil. The contexts of requests and streams end with ctx; serve waits a few seconds
// for them.
func (s *server) serve(ctx context.Context, l net.Listener) error {
	base := ctx
	if s.routeAuth != nil {
		base = withRouteAuth(ctx, s.routeAuth)
	}
	// http.Server does not track connections that a stream has taken over.
	var busy sync.WaitGroup
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			busy.Add(1)
			defer busy.Done()
			s.handler.ServeHTTP(w, req)
		}),
		TLSConfig:         hardened(s.tls),
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          stdlog.New(errorLog{log.G(ctx)}, "", 0),
		// Otherwise net/http answers OPTIONS * itself, without authentication.
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return base },
	}

	served := make(chan error, 1)
	go func() { served <- srv.ServeTLS(l, "", "") }()
	select {
	case err := <-served:
		err = fmt.Errorf("serve requests to the node: %w", err)
		return errors.Join(err, srv.Close())
	case <-ctx.Done():
	}

	closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	err := srv.Shutdown(closeCtx) //nolint:contextcheck // ctx has ended; closeCtx bounds the shutdown
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err == nil {
		err = waitFor(closeCtx, &busy)
	}
	if err != nil {
		log.G(ctx).WithError(err).Warn("Requests did not end in time; closing their connections")
		_ = srv.Close()
	}
	return nil
}

// waitFor waits until wg is done or ctx ends. In the second case its goroutine lives as long as handlers that ignore their context.
func waitFor(ctx context.Context, wg *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errorLog receives the lines of http.Server. Port probes cause failed handshakes, so these are not logged as warnings.
type errorLog struct{ logger log.Logger }

func (l errorLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.Contains(text, "TLS handshake error") {
		l.logger.Debug(text)
	} else {
		l.logger.Warn(text)
	}
	return len(line), nil
}
