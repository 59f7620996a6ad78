// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/gorilla/websocket"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/websession"
)

// Exec implements service.Executor by ECS Exec. A session of ECS Exec is a terminal with one output and no exit
// code, so a shell of the image runs the command.
func (d *driver) Exec(ctx context.Context, in service.Target[types.Task], command []string, attach api.AttachIO) error {
	if !in.Instance.EnableExecuteCommand {
		return errdefs.InvalidInput("its task was run without ECS Exec: name a role with the rights for it in execRole of this node's configuration, and make the pod again")
	}
	shell := service.Shell(attach, shellexec.Options{Command: command, Terminal: true})
	conn, err := d.client.session(ctx, *in.Instance.TaskArn, in.Container, shellexec.Line(shell.Command()))
	if err != nil {
		return err
	}
	defer conn.Close()
	s := newChannel(conn, attach, shell)
	if err := s.run(ctx); err != nil {
		return err
	}
	ended, err := shell.Ended()
	if !ended {
		_ = shell.Flush()
		return fmt.Errorf("the session has ended without the exit code of the command: does the image have sh? %s", s.last)
	}
	return err
}

// session opens a session in a container. The token is a key to the container, so no error contains it.
func (c *client) session(ctx context.Context, arn, container, command string) (*websocket.Conn, error) {
	out, err := c.ecs.ExecuteCommand(ctx, &ecs.ExecuteCommandInput{Cluster: &c.cluster, Task: &arn, Container: &container, Command: &command, Interactive: true})
	if err != nil {
		return nil, kind(err, "execute a command in task "+arn)
	}
	if out.Session == nil {
		return nil, errors.New("ECS returned no session")
	}
	var o websession.Options
	if t, ok := c.http.Transport.(*http.Transport); ok {
		o.TLS = t.TLSClientConfig
	}
	conn, err := websession.Dial(ctx, aws.ToString(out.Session.StreamUrl), o)
	if err != nil {
		return nil, fmt.Errorf("execute a command in task %s: %w", arn, err)
	}
	if err := conn.WriteJSON(map[string]string{
		"MessageSchemaVersion": "1.0", "RequestId": uuid(newID()), "TokenValue": aws.ToString(out.Session.TokenValue), "ClientId": uuid(newID()), "ClientVersion": clientVersion,
	}); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("open the session of task %s: %w", arn, err)
	}
	return conn, nil
}
