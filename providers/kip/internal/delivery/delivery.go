// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sshexec"
)

// Config configures the delivery.
type Config struct {
	// Agent is the file of the agent, for the system of the machines: vk-cell of `make cell-image`. Required.
	Agent string `json:"agent"`
	// User is the user of the image that may become root with sudo. Default: root.
	User string `json:"user,omitempty"`
	// Port is the port of the SSH server. Default: 22.
	Port int `json:"port,omitempty"`
}

// Keys are the keys of a machine's SSH server and of the node.
type Keys struct{ Host, Node ed25519.PrivateKey }

// Paths in a machine.
const (
	stateDir     = "/var/lib/vk-cell"
	userDataFile = stateDir + "/user-data"
	agentFile    = "/usr/local/bin/vk-cell"
	unitFile     = "/etc/systemd/system/vk-cell.service"
)

// unit runs the agent. Only the agent reaches the metadata service of the cloud: see hideMetadata of command vk-cell.
const unit = `[Unit]
Description=Agent of virtual-kubelet
After=network-online.target
Wants=network-online.target

[Service]
ExecStartPre=-/bin/sh -c 'ip rule add pref 10 to 169.254.169.254 fwmark 0x766b lookup main'
ExecStartPre=/bin/sh -c 'ip rule show | grep -q "^11:.*169.254.169.254.*prohibit" || ip rule add pref 11 to 169.254.169.254 type prohibit'
ExecStartPre=-/bin/sh -c 'for at in fd00:ec2::254 fe80::a9fe:a9fe; do ip -6 rule show | grep -q "^11:.*$at.*prohibit" || ip -6 rule add pref 11 to $$at type prohibit; done'
ExecStart=` + agentFile + ` agent --user-data ` + userDataFile + ` --dir ` + stateDir + `
Restart=always
RestartSec=1
PrivateMounts=yes
Delegate=yes

[Install]
WantedBy=multi-user.target
`

// UserData returns user data for cloud-init: the host key of the machine, the key of the node, and a file with the user data of the agent.
func UserData(c Config, k Keys, agent []byte) []byte {
	host, err := ssh.MarshalPrivateKey(k.Host, "")
	if err != nil {
		panic(err) // the input is a valid key
	}
	public, node := publicKey(k.Host), publicKey(k.Node)
	user := map[string]any{"name": c.User, "ssh_authorized_keys": []string{node}}
	if c.User != "root" {
		user["sudo"], user["shell"] = "ALL=(ALL) NOPASSWD:ALL", "/bin/sh"
	}
	text, err := json.Marshal(map[string]any{ // JSON is YAML
		"disable_root": c.User != "root", "ssh_deletekeys": true, "ssh_pwauth": false, "users": []any{user},
		"ssh_keys": map[string]string{"ed25519_private": string(pem.EncodeToMemory(host)), "ed25519_public": public},
		"write_files": []map[string]string{{
			"path": userDataFile, "permissions": "0600", "encoding": "b64", "content": base64.StdEncoding.EncodeToString(agent),
		}},
	})
	if err != nil {
		panic(err) // the value has only strings
	}
	return append([]byte("#cloud-config\n"), text...)
}

// publicKey returns the public key of a private key, as a file authorized_keys has it.
func publicKey(k ed25519.PrivateKey) string {
	key, err := ssh.NewPublicKey(k.Public())
	if err != nil {
		panic(err) // the input is a valid key
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// install is the script that installs the agent from its standard input, and closes the SSH server. Its arguments are the root directory and the hash of
// the agent.
const install = `set -eu
umask 022
mkdir -p "$0/usr/local/bin" "$0/etc/systemd/system"
cat >"$0` + agentFile + `.new"
echo "$1  $0` + agentFile + `.new" | sha256sum -c --quiet -
test -s "$0` + userDataFile + `"
chmod 755 "$0` + agentFile + `.new"
mv "$0` + agentFile + `.new" "$0` + agentFile + `"
cat >"$0` + unitFile + `" <<'UNIT'
` + unit + `UNIT
systemctl daemon-reload
systemctl enable --now vk-cell.service
for unit in ssh.socket ssh.service sshd.socket sshd.service; do
  systemctl stop "$unit" || true
  systemctl mask "$unit" || true
  if systemctl is-active --quiet "$unit"; then
    systemctl disable --now vk-cell.service
    echo "$unit is still active: stop it in the image" >&2
    exit 1
  fi
done
`

// deliverTime is the time limit of a delivery.
const deliverTime = 5 * time.Minute

// Deliver copies the agent to the machine at a host, and starts it. After an error, deliver again.
func Deliver(ctx context.Context, c Config, k Keys, host string) error {
	return deliver(ctx, c, k, host, "")
}

// deliver delivers the agent below a directory of the machine.
func deliver(ctx context.Context, c Config, k Keys, host, root string) error {
	ctx, cancel := context.WithTimeout(ctx, deliverTime)
	defer cancel()
	agent, err := os.Open(c.Agent)
	if err != nil {
		return fmt.Errorf("deliver the agent: %w", err)
	}
	defer agent.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, agent); err != nil {
		return fmt.Errorf("deliver the agent: %w", err)
	}
	if _, err := agent.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("deliver the agent: %w", err)
	}
	node, err := ssh.NewSignerFromKey(k.Node)
	if err != nil {
		return fmt.Errorf("read the key of the node: %w", err)
	}
	client, err := sshexec.Server{Address: net.JoinHostPort(host, strconv.Itoa(c.Port)), HostKey: publicKey(k.Host)}.Dial(ctx, c.User, ssh.PublicKeys(node))
	if err != nil {
		return fmt.Errorf("deliver the agent: %w", err)
	}
	defer client.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	session, err := client.NewSession()
	if err != nil {
		return fmt.Errorf("deliver the agent: open a session: %w", err)
	}
	defer session.Close()
	var said strings.Builder
	session.Stdin, session.Stderr = agent, &said
	command := []string{"sh", "-c", install, root, hex.EncodeToString(hash.Sum(nil))}
	if c.User != "root" {
		command = append([]string{"sudo", "-n"}, command...)
	}
	if err := session.Run(sshexec.Quote(command)); err != nil {
		return fmt.Errorf("deliver the agent: %w: %.500s", errors.Join(err, ctx.Err()), strings.TrimSpace(said.String()))
	}
	return nil
}
