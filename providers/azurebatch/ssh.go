// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/batch/azbatch"
	"golang.org/x/crypto/ssh"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/pack"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sshexec"
)

const (
	// keyBits is the size of this process's RSA key. The documentation of Batch mentions only RSA keys.
	keyBits = 3072
	// loginTime is how long this process uses a user of a machine. The user expires after a day.
	loginTime = 12 * time.Hour
	// loginTries is the number of login attempts of a new user, with growing delays, because Batch does not report when the machine has the user.
	loginTries = 4
)

// newKey returns a key that exists only in memory.
func newKey() (ssh.Signer, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(key)
}

// openStream runs req over SSH through the program of a pod's task. The input of the program carries the request.
func (d *driver) openStream(ctx context.Context, i instance, req podjob.Request, e podjob.Ends) error {
	switch {
	case !d.config.SSH.Enabled:
		return errdefs.InvalidInput("this node does not log in to the machines of the pool: set ssh.enabled in its configuration, or read the logs")
	case i.said == nil || i.said.Ended:
		return errdefs.InvalidInput("its task does not run")
	}
	claim, err := d.pods.Claim(ctx, i.pod.UID)
	switch {
	case err != nil:
		return err
	case claim.HostKey == "" || claim.Program == "":
		return fmt.Errorf("its task has not written the key of the SSH server of machine %s: have an SSH server on the machines of the pool, and make the pod again", i.said.Host)
	}
	client, err := d.dialMachine(ctx, i.said.Host, claim.HostKey)
	if err != nil {
		return fmt.Errorf("machine %s: %w", i.said.Host, err)
	}
	return pack.OverSSH(ctx, client, claim.Program, i.said.Socket, req, e)
}

// dialMachine logs in to a machine with the host key. It creates the user again if the machine has lost it.
func (d *driver) dialMachine(ctx context.Context, machine, hostKey string) (*ssh.Client, error) {
	key, err := d.key()
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		l, err := d.logIn(ctx, machine, key, try == 1)
		if err != nil {
			return nil, err
		}
		client, err := sshexec.Server{Address: l.address, HostKey: hostKey}.Dial(ctx, d.job, ssh.PublicKeys(key))
		if !errors.Is(err, sshexec.ErrRefused) || try == loginTries {
			return client, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(try) * time.Second):
		}
	}
}

// logIn returns the user of this process on a machine. It creates the user if it is missing, if it expires soon, or if anew is true.
func (d *driver) logIn(ctx context.Context, machine string, key ssh.Signer, anew bool) (login, error) {
	d.mu.Lock()
	l := d.logins[machine]
	d.mu.Unlock()
	if !anew && time.Now().Before(l.until) {
		return l, nil
	}
	public := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
	_, err := d.client.CreateNodeUser(ctx, d.config.Pool, machine, azbatch.CreateNodeUserContent{Name: &d.job, IsAdmin: new(true), SSHPublicKey: &public}, nil)
	if azlogin.CodeOf(batch.Explain("", err)) == "NodeUserExists" {
		_, err = d.client.ReplaceNodeUser(ctx, d.config.Pool, machine, d.job, azbatch.UpdateNodeUserContent{SSHPublicKey: &public}, nil)
	}
	if err != nil {
		return l, batch.Explain("make user "+d.job, err)
	}
	at, err := d.client.GetNodeRemoteLoginSettings(ctx, d.config.Pool, machine, nil)
	if err != nil {
		return l, batch.Explain("find the SSH server", err)
	}
	l = login{net.JoinHostPort(valueOf(at.RemoteLoginIPAddress), strconv.Itoa(int(valueOf(at.RemoteLoginPort)))), time.Now().Add(loginTime)}
	d.mu.Lock()
	defer d.mu.Unlock()
	for old, l := range d.logins {
		if time.Now().After(l.until) { // the machine may be gone
			delete(d.logins, old)
		}
	}
	d.logins[machine] = l
	return l, nil
}
