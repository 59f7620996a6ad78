// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// Durations of the lease, which allows one agent at a time to bind pods. An agent that cannot renew the lease
// stops before another agent starts.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// LeaseName is the name of the lease.
const LeaseName = "virtual-kubelet-admiralty-agent"

// Options configure an agent.
type Options struct {
	Config Config
	// Access is the client configuration for the source cluster, where the agent and the nodes are.
	Access *rest.Config
	// Namespace is the namespace of the lease.
	Namespace string
	// Listener accepts connections for the webhook. If it is nil, the webhook is not served.
	Listener net.Listener
	// CertFile and KeyFile are the certificate and key of the webhook. The agent reads the files again after a
	// change.
	CertFile, KeyFile string

	terms struct{ duration, deadline, retry time.Duration } // for tests; zero: the constants
}

// Run serves the webhook, and binds pods while this agent has the lease, until ctx ends.
func Run(ctx context.Context, o Options) error {
	client, err := kubernetes.NewForConfig(o.Access)
	if err != nil {
		return fmt.Errorf("admiralty agent: make the client: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer func() { cancel(nil); wg.Wait() }() // cancel first, because the webhook ends with ctx
	if o.Listener != nil {
		pair := &keyPair{cert: o.CertFile, key: o.KeyFile}
		if _, err := pair.currentPair(); err != nil {
			return fmt.Errorf("admiralty agent: certificate of the webhook: %w", err)
		}
		wg.Go(func() {
			if err := serveWebhook(ctx, o.Listener, pair); err != nil {
				cancel(fmt.Errorf("admiralty agent: webhook: %w", err))
			}
		})
	}
	for ctx.Err() == nil { // after losing the lease, try to acquire it again
		if err := leadElection(ctx, client, o); err != nil {
			return err
		}
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return nil
}

// leadElection waits for the lease, and binds pods until it loses the lease.
func leadElection(ctx context.Context, client kubernetes.Interface, o Options) error {
	host, _ := os.Hostname() // a readable part of the identity
	terms := o.terms
	if terms.duration == 0 {
		terms.duration, terms.deadline, terms.retry = leaseDuration, renewDeadline, retryPeriod
	}
	s, err := newScheduler(client, o.Config) // before the election: an agent that cannot bind must not hold the lease
	if err != nil {
		return fmt.Errorf("admiralty agent: %w", err)
	}
	ended := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: LeaseName}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		},
		LeaseDuration: terms.duration, RenewDeadline: terms.deadline, RetryPeriod: terms.retry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer close(ended)
				log.G(ctx).Info("This agent binds elected pods now")
				s.run(ctx)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("admiralty agent: lease: %w", err)
	}
	elector.Run(ctx)
	if elector.IsLeader() || ctx.Err() == nil { // otherwise the agent never held the lease
		<-ended
	}
	return nil
}

// serveWebhook serves the webhook until ctx ends.
func serveWebhook(ctx context.Context, l net.Listener, pair *keyPair) error {
	server := &http.Server{
		Handler: Webhook(), ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: 2 * time.Minute,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return pair.currentPair()
		}},
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ServeTLS(l, "", ""); ctx.Err() == nil {
		return err
	}
	return nil
}
