// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// header is the length of the header of a message in bytes. Its fields, by offset: length of the header up to the length of the payload 0, type 4, version 36,
// date 40, number 48, flags 56, ID 64 with its halves exchanged, SHA-256 of the payload 80, type of the payload 112, its length 116.
const header = 120

// dataChannel is the agent's end of a data channel. It drops the second message of output once, to find clients that do not wait for a
// missing message. The message must be sent again, and a client that acknowledges unusable messages would never get it.
type dataChannel struct {
	conn *websocket.Conn

	mu     sync.Mutex
	number int64            // guarded by mu; of the next message
	unsaid map[int64][]byte // guarded by mu; messages without an acknowledgement
	next   int64            // the next expected number
	ended  chan struct{}
}

func newDataChannel(conn *websocket.Conn) *dataChannel {
	d := &dataChannel{conn: conn, unsaid: map[int64][]byte{}, ended: make(chan struct{})}
	go d.resendPayloads()
	return d
}

// encodeMessage encodes a message.
func encodeMessage(kind string, number int64, payloadType uint32, payload []byte) []byte {
	out := make([]byte, header, header+len(payload))
	binary.BigEndian.PutUint32(out, 116)
	copy(out[4:36], fmt.Sprintf("%-32s", kind))
	binary.BigEndian.PutUint32(out[36:], 1)
	binary.BigEndian.PutUint64(out[40:], uint64(time.Now().UnixMilli()))
	binary.BigEndian.PutUint64(out[48:], uint64(number))
	_, _ = rand.Read(out[64:80]) // rand.Read never fails
	sum := sha256.Sum256(payload)
	copy(out[80:], sum[:])
	binary.BigEndian.PutUint32(out[112:], payloadType)
	binary.BigEndian.PutUint32(out[116:], uint32(len(payload)))
	return append(out, payload...)
}

// sendPayload sends a payload, and repeats it until it is acknowledged.
func (d *dataChannel) sendPayload(payloadType uint32, payload []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := encodeMessage("output_stream_data", d.number, payloadType, payload)
	d.unsaid[d.number] = m
	if d.number != 3 { // message 3 is dropped
		_ = d.conn.WriteMessage(websocket.BinaryMessage, m) // the reader detects the end
	}
	d.number++
}

// Write implements io.Writer: output, in pieces.
func (d *dataChannel) Write(data []byte) (int, error) {
	for part := range slices.Chunk(data, 1024) {
		d.sendPayload(1, part)
	}
	return len(data), nil
}

// resendPayloads sends unacknowledged messages again.
func (d *dataChannel) resendPayloads() {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-d.ended:
			return
		}
		d.mu.Lock()
		for n := range d.number {
			if m := d.unsaid[n]; m != nil {
				_ = d.conn.WriteMessage(websocket.BinaryMessage, m) // the reader detects the end
			}
		}
		d.mu.Unlock()
	}
}

// read reads the messages of the client in their order, each once, until take returns false. A flag has its place in the order like every
// message: the agent (amazon-ssm-agent, agent/session/datachannel, read on 2026-11-28) skips a number that it has already received.
func (d *dataChannel) read(take func(payloadType uint32, payload []byte) bool) {
	defer close(d.ended)
	early := map[int64][]byte{}
	for {
		kind, m, err := d.conn.ReadMessage()
		if err != nil {
			return
		}
		if kind != websocket.BinaryMessage || len(m) < header {
			continue
		}
		payload := m[header:]
		if sum := sha256.Sum256(payload); !bytes.Equal(sum[:], m[80:112]) || int(binary.BigEndian.Uint32(m[116:])) != len(payload) {
			continue
		}
		number := int64(binary.BigEndian.Uint64(m[48:]))
		switch strings.TrimRight(string(m[4:36]), " ") {
		case "acknowledge":
			var ack struct {
				AcknowledgedMessageSequenceNumber int64
				AcknowledgedMessageType           string
			}
			if json.Unmarshal(payload, &ack) == nil && ack.AcknowledgedMessageType == "output_stream_data" {
				d.mu.Lock()
				delete(d.unsaid, ack.AcknowledgedMessageSequenceNumber)
				d.mu.Unlock()
			}
		case "input_stream_data":
			ack, _ := json.Marshal(map[string]any{"AcknowledgedMessageType": "input_stream_data", "AcknowledgedMessageSequenceNumber": number, "IsSequentialMessage": true})
			d.mu.Lock()
			_ = d.conn.WriteMessage(websocket.BinaryMessage, encodeMessage("acknowledge", 0, 0, ack)) // the reader detects the end
			d.mu.Unlock()
			early[number] = m
			for m := early[d.next]; m != nil; m = early[d.next] {
				delete(early, d.next)
				d.next++
				if !take(binary.BigEndian.Uint32(m[112:]), m[header:]) {
					return
				}
			}
			for n := range early {
				if n < d.next {
					delete(early, n)
				}
			}
		}
	}
}

// close reports the end of the session, after all of the output was acknowledged.
func (d *dataChannel) close(said string) {
	for begin := time.Now(); time.Since(begin) < 10*time.Second; {
		d.mu.Lock()
		open := len(d.unsaid)
		d.mu.Unlock()
		if open == 0 {
			break
		}
		select {
		case <-d.ended:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	data, _ := json.Marshal(map[string]any{"MessageType": "channel_closed", "SchemaVersion": 1, "Output": said})
	d.mu.Lock()
	_ = d.conn.WriteMessage(websocket.BinaryMessage, encodeMessage("channel_closed", 0, 0, data)) // the reader detects the end
	d.mu.Unlock()
}
