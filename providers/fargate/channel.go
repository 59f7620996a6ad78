// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
)

const (
	// clientVersion is a version of the vendor's client that knows the protocol used here.
	clientVersion = "1.2.0.0"
	// mostInput is the maximum number of input bytes in a message. window is the maximum number of unacknowledged messages.
	mostInput, window = 1024, 32
	// againAfter is the time after which an unacknowledged message is sent again.
	againAfter = 2 * time.Second
	// beat is the interval at which a session reports that it is alive.
	beat = 30 * time.Second
	// terminate is the flag of the message that ends a session.
	terminate = 2
)

// channel is a data channel of Systems Manager: each message has a number, and is sent again until it is
// acknowledged.
type channel struct {
	conn   *websocket.Conn
	attach api.AttachIO
	shell  *shellexec.Exec
	stderr io.Writer
	last   string // the closing message of the other end
	next   int64  // the number of the next expected message

	ready chan struct{} // closed after the handshake
	room  chan struct{} // holds unacknowledged messages

	ending sync.Once // guards the closing message

	mu      sync.Mutex
	number  int64                 // guarded by mu; of the next message
	waiting map[int64]*waitingFor // guarded by mu; keyed by number
}

// waitingFor is a message that is not acknowledged yet.
type waitingFor struct {
	data []byte
	at   time.Time
}

func newChannel(conn *websocket.Conn, attach api.AttachIO, shell *shellexec.Exec) *channel {
	c := &channel{
		conn: conn, attach: attach, shell: shell, stderr: io.Discard, ready: make(chan struct{}), room: make(chan struct{}, window), waiting: map[int64]*waitingFor{},
	}
	if w := attach.Stderr(); w != nil {
		c.stderr = w
	}
	return c
}

// run copies until the session ends. If ctx ends first, run terminates the session, because otherwise the command would continue.
func (c *channel) run(ctx context.Context) error {
	open, closed := context.WithCancel(context.WithoutCancel(ctx))
	defer closed()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, c.terminate)
	defer stop()
	go c.feed(ctx)
	go c.resize(ctx)
	go c.again(open)
	err := c.copy(ctx)
	if err == nil {
		return nil
	}
	c.terminate()
	for c.unacknowledged() {
		_, data, cut := c.conn.ReadMessage()
		if cut != nil {
			break
		}
		if f, broken := unmarshal(data); broken == nil && f.kind == typeAck {
			_, _ = c.take(f) // take never fails for an acknowledgement
		}
	}
	return err
}

// copy handles messages until the session or ctx has ended.
func (c *channel) copy(ctx context.Context) error {
	for {
		kind, data, err := c.conn.ReadMessage()
		if ended, _ := c.shell.Ended(); ended {
			return nil
		}
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("the session was cut: %w", err)
		}
		if kind != websocket.BinaryMessage {
			continue
		}
		f, err := unmarshal(data)
		if err != nil {
			continue // the other end sends a message without an acknowledgement again
		}
		if ctx.Err() != nil && f.kind != typeAck {
			return ctx.Err()
		}
		if over, err := c.take(f); over || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// terminate asks the other end once to end the session, and waits a while for the answer. The message has a
// number like every other message: the agent skips a number that it has seen.
func (c *channel) terminate() {
	c.ending.Do(func() {
		_ = c.conn.SetReadDeadline(time.Now().Add(2 * againAfter)) // time for one repetition of a lost message
		_ = c.send(payloadFlag, binary.BigEndian.AppendUint32(nil, terminate))
	})
}

// unacknowledged reports whether sent messages still wait for an acknowledgement.
func (c *channel) unacknowledged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) > 0
}

// take handles a message, and reports whether the session is over.
func (c *channel) take(f frame) (over bool, err error) {
	switch f.kind {
	case typeAck:
		var ack struct{ AcknowledgedMessageSequenceNumber int64 }
		if err := json.Unmarshal(f.data, &ack); err == nil {
			c.acknowledged(ack.AcknowledgedMessageSequenceNumber)
		}
	case typeClosed:
		var said struct{ Output string }
		_ = json.Unmarshal(f.data, &said) // the text is for users, and may be missing
		c.last = strings.TrimSpace(said.Output)
		return true, nil
	case typeOutput:
		if f.number > c.next {
			return false, nil // an earlier message is missing: the other end sends both again
		}
		if err := c.acknowledge(f); err != nil {
			return false, err
		}
		if f.number < c.next {
			return false, nil
		}
		c.next++
		return c.payload(f)
	}
	return false, nil
}

// payload handles the messages of the other end in their order.
func (c *channel) payload(f frame) (over bool, err error) {
	switch f.payload {
	case payloadHandshakeRequest:
		return false, c.shake(f.data)
	case payloadHandshakeComplete:
		close(c.ready)
	case payloadOutput:
		_, err := c.shell.Write(f.data)
		ended, _ := c.shell.Ended()
		return ended, err
	case payloadStderr:
		_, err := c.stderr.Write(f.data)
		return false, err
	case payloadExitCode:
		var code int
		if _, err := fmt.Sscan(string(f.data), &code); err != nil {
			return false, nil // the shell reports the exit code
		}
		c.shell.End(code)
		return true, nil
	}
	return false, nil
}

// shake answers the requests of the other end. It supports the session type, but not encryption by a key of KMS.
func (c *channel) shake(request []byte) error {
	var asked struct {
		RequestedClientActions []struct{ ActionType string }
	}
	if err := json.Unmarshal(request, &asked); err != nil {
		return fmt.Errorf("the handshake of the session: %w", err)
	}
	type action struct {
		ActionType   string
		ActionStatus int
		ActionResult any
		Error        string
	}
	answer := struct {
		ClientVersion          string
		ProcessedClientActions []action
		Errors                 []string
	}{ClientVersion: clientVersion}
	for _, a := range asked.RequestedClientActions {
		if a.ActionType != "SessionType" {
			return errors.New("the session wants " + a.ActionType + ", which is not had: leave kmsKeyId out of the configuration of ECS Exec of the cluster")
		}
		answer.ProcessedClientActions = append(answer.ProcessedClientActions, action{ActionType: a.ActionType, ActionStatus: 1})
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return c.send(payloadHandshakeResponse, data)
}

// feed sends the input in messages of a size that the other end accepts.
func (c *channel) feed(ctx context.Context) {
	select {
	case <-c.ready:
	case <-ctx.Done():
		return
	}
	_ = c.shell.Send(ctx, c.attach.Stdin(), func(data []byte) error { // ends with the session
		for part := range slices.Chunk(data, mostInput) {
			select {
			case c.room <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := c.send(payloadOutput, part); err != nil {
				return err
			}
		}
		return nil
	})
}

// resize sends the sizes of the terminal.
func (c *channel) resize(ctx context.Context) {
	select {
	case <-c.ready:
	case <-ctx.Done():
		return
	}
	shellexec.EachSize(ctx, c.attach, func(size api.TermSize) {
		_ = c.send(payloadSize, fmt.Appendf(nil, `{"cols":%d,"rows":%d}`, size.Width, size.Height)) // fails after the session
	})
}

// send sends a message with a number, and repeats it until it is acknowledged.
func (c *channel) send(payload uint32, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := frame{kind: typeInput, number: c.number, id: newID(), payload: payload, data: data}
	if f.number == 0 {
		f.flags = 1
	}
	c.number++
	message := f.marshal()
	c.waiting[f.number] = &waitingFor{message, time.Now()}
	return c.conn.WriteMessage(websocket.BinaryMessage, message)
}

// write sends a message once.
func (c *channel) write(f frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn.WriteMessage(websocket.BinaryMessage, f.marshal())
}

func (c *channel) acknowledge(f frame) error {
	data, err := json.Marshal(map[string]any{
		"AcknowledgedMessageType": f.kind, "AcknowledgedMessageId": uuid(f.id), "AcknowledgedMessageSequenceNumber": f.number, "IsSequentialMessage": true,
	})
	if err != nil {
		return err
	}
	return c.write(frame{kind: typeAck, flags: 3, id: newID(), data: data})
}

func (c *channel) acknowledged(number int64) {
	c.mu.Lock()
	_, was := c.waiting[number]
	delete(c.waiting, number)
	c.mu.Unlock()
	if was {
		select {
		case <-c.room: // only messages of input take room
		default:
		}
	}
}

// again sends unacknowledged messages again, and keeps the connection alive.
func (c *channel) again(ctx context.Context) {
	tick := time.NewTicker(againAfter / 4)
	defer tick.Stop()
	said := time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		for _, w := range c.waiting {
			if time.Since(w.at) >= againAfter {
				w.at = time.Now()
				_ = c.conn.WriteMessage(websocket.BinaryMessage, w.data) // the reader sees an end
			}
		}
		if time.Since(said) >= beat {
			said = time.Now()
			_ = c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
		}
		c.mu.Unlock()
	}
}
