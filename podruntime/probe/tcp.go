// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// askTCP succeeds if a TCP connection can be opened.
func (p *Prober) askTCP(ctx context.Context, action *corev1.TCPSocketAction, t Target, timeout time.Duration) (outcome, string, error) {
	port, err := portOf(action.Port, t.Container)
	if err != nil {
		return unknown, "", err
	}
	host := action.Host
	if host == "" {
		host = addressOf(t)
	}
	bounded, cancel := context.WithTimeout(withTarget(ctx, t), timeout)
	defer cancel()
	conn, err := p.dialer.dialTarget(bounded, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return failure, err.Error(), nil
	}
	_ = conn.Close() // an open connection is enough
	return success, "", nil
}
