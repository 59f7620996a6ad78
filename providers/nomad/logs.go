// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// firstWindow is the number of bytes at the end of a log that are first searched for its last lines.
const firstWindow = 64 << 10

// recent is the maximum age of the sinceTime of a request that counts as a request for new lines only.
const recent = 30 * time.Second

// Logs implements service.LogReader. Nomad stores the outputs separately and without times, so Logs returns the standard output and
// then the standard error. With Follow, it returns both as they come.
func (d *driver) Logs(ctx context.Context, of service.Target[*instance], opts api.ContainerLogOpts) (_ io.ReadCloser, err error) {
	laterOnly := opts.Follow && opts.Tail == 0 && !opts.SinceTime.IsZero() && time.Since(opts.SinceTime) < recent
	switch {
	case opts.Previous:
		return nil, errdefs.InvalidInput("Nomad keeps no log of the run before by itself: the log has the lines of all runs")
	case opts.Timestamps:
		return nil, errdefs.InvalidInput("Nomad keeps no times of lines: ask without timestamps")
	case (opts.SinceSeconds > 0 || !opts.SinceTime.IsZero()) && !laterOnly:
		return nil, errdefs.InvalidInput("Nomad keeps no times of lines: ask for the last lines, with tail")
	}
	ctx, cancel := context.WithCancel(ctx)
	l := logReader{d: d, ctx: ctx, jobID: of.Instance.jobID, alloc: of.Instance.alloc.ID, task: of.Container}
	reader, writer := io.Pipe()
	var old [2][]byte
	var from [2]int64
	for i, kind := range kinds {
		switch {
		case laterOnly:
			from[i], err = l.size(kind)
		case opts.Tail > 0:
			old[i], from[i], err = l.tail(kind, opts.Tail)
		default:
			old[i], err = l.read(kind, "start", 0)
			from[i] = int64(len(old[i]))
		}
		if err != nil {
			cancel()
			return nil, err
		}
	}
	whole := append(old[0], old[1]...)
	if opts.Tail > 0 {
		whole = lastLines(whole, opts.Tail)
	}
	var body io.Reader = bytes.NewReader(whole)
	if opts.Follow {
		go func() { _ = writer.CloseWithError(l.follow(writer, from)) }()
		body = io.MultiReader(body, reader)
	}
	if opts.LimitBytes > 0 {
		body = io.LimitReader(body, int64(opts.LimitBytes))
	}
	return &logBody{Reader: body, close: func() { cancel(); _ = reader.Close() }}, nil
}

var kinds = [2]string{"stdout", "stderr"}

type logBody struct {
	io.Reader
	close func()
}

// Close ends the requests.
func (b *logBody) Close() error { b.close(); return nil }

// ended reports whether a task has ended.
func (l logReader) ended() bool {
	l.d.store.mu.Lock()
	defer l.d.store.mu.Unlock()
	e := l.d.store.byJob[l.jobID]
	if e == nil || e.allocs[l.alloc] == nil {
		return true
	}
	a := e.allocs[l.alloc]
	return terminal(a) || a.TaskStates[l.task] != nil && a.TaskStates[l.task].State == "dead"
}

// logReader reads the logs of a task.
type logReader struct {
	d                  *driver
	ctx                context.Context // of the request; the methods of io.Reader have no context
	jobID, alloc, task string
}

func (l logReader) open(ctx context.Context, kind, origin string, offset int64, follow bool) (io.ReadCloser, error) {
	answer, err := l.d.client.open(ctx, http.MethodGet, "/v1/client/fs/logs/"+l.alloc, query{
		"task": {l.task}, "type": {kind}, "origin": {origin}, "offset": {strconv.FormatInt(offset, 10)}, "follow": {strconv.FormatBool(follow)}, "plain": {"true"},
	}, nil)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// read returns the current log, or nothing if the task has none yet.
func (l logReader) read(kind, origin string, offset int64) ([]byte, error) {
	body, err := l.open(l.ctx, kind, origin, offset, false)
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

// size returns the size of a log as far as Nomad has kept it.
func (l logReader) size(kind string) (int64, error) {
	data, err := l.read(kind, "start", 0)
	return int64(len(data)), err
}

// tail returns the last lines, from a window that grows until it contains them, and the size of the log.
func (l logReader) tail(kind string, lines int) (data []byte, size int64, err error) {
	for window := int64(firstWindow); ; window *= 4 {
		if data, err = l.read(kind, "end", window); err != nil {
			return nil, 0, err
		}
		if int64(len(data)) < window {
			return lastLines(data, lines), int64(len(data)), nil
		}
		if bytes.Count(data, []byte("\n")) > lines {
			size, err = l.size(kind)
			return lastLines(data, lines), size, err
		}
	}
}

// lastLines returns the last n lines of data. The last line may have no newline.
func lastLines(data []byte, n int) []byte {
	end := len(data)
	if end > 0 && data[end-1] == '\n' {
		end--
	}
	for ; n > 0; n-- {
		i := bytes.LastIndexByte(data[:end], '\n')
		if i < 0 {
			return data
		}
		end = i
	}
	return data[end+1:]
}

// follow writes the output after the offsets, until the task has ended.
func (l logReader) follow(w io.Writer, from [2]int64) error {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	var mu sync.Mutex // of w
	var running sync.WaitGroup
	running.Go(func() { // after the end of the task, lets the others read the rest
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for !l.ended() {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
		cancel()
	})
	var failed [2]error
	for i, kind := range kinds {
		running.Go(func() {
			write := func(body io.ReadCloser) error {
				defer body.Close()
				buffer := make([]byte, 32<<10)
				for {
					n, err := body.Read(buffer)
					from[i] += int64(n)
					mu.Lock()
					_, writeErr := w.Write(buffer[:n])
					mu.Unlock()
					if err != nil || writeErr != nil {
						return errors.Join(writeErr, err)
					}
				}
			}
			pause := newPause()
			for ctx.Err() == nil {
				body, err := l.open(ctx, kind, "start", from[i], true)
				if err == nil {
					_ = write(body) // ends with ctx; otherwise the loop opens the log again at the same offset
					pause = newPause()
				} else if final(err) {
					failed[i] = err
					cancel()
					return
				}
				asked, _ := errdefs.RetryAfterOf(err)
				sleep(ctx, asked)
				sleep(ctx, pause.Step())
			}
			if l.ctx.Err() != nil {
				return
			}
			body, err := l.open(l.ctx, kind, "start", from[i], false)
			if err == nil {
				err = write(body)
			}
			if !errors.Is(err, io.EOF) && !errdefs.IsNotFound(err) {
				failed[i] = err
			}
		})
	}
	running.Wait()
	return errors.Join(failed[0], failed[1])
}
