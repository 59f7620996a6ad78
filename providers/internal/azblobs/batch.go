// SPDX-License-Identifier: Apache-2.0

package azblobs

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// MaxBatch is the service's limit of blobs in one delete request.
const MaxBatch = 256

// DeleteBatch removes up to MaxBatch blobs in one request. A missing blob is no error.
func (c *Container) DeleteBatch(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	container, err := url.Parse(c.URL)
	if err != nil {
		return err
	}
	token, err := c.Token(ctx)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	for i, name := range names {
		w, err := parts.CreatePart(textproto.MIMEHeader{
			"Content-Type": {"application/http"}, "Content-Transfer-Encoding": {"binary"}, "Content-Id": {strconv.Itoa(i)},
		})
		if err != nil {
			return err
		}
		path := container.EscapedPath() + "/" + (&url.URL{Path: name}).EscapedPath()
		if _, err := fmt.Fprintf(w, "DELETE %s HTTP/1.1\r\nx-ms-date: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n",
			path, time.Now().UTC().Format(http.TimeFormat), token); err != nil {
			return err
		}
	}
	if err := parts.Close(); err != nil {
		return err
	}
	answer, err := c.sendRequest(ctx, http.MethodPost, "", "restype=container&comp=batch", http.Header{"Content-Type": {"multipart/mixed; boundary=" + parts.Boundary()}}, &body, int64(body.Len()))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return batchError(answer)
}

// batchError returns the first error in the answer to a batch of deletes.
func batchError(answer *http.Response) error {
	_, parameters, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("delete blobs: the answer is not understood: %w", err)
	}
	for parts := multipart.NewReader(answer.Body, parameters["boundary"]); ; {
		part, err := parts.NextPart()
		if err == io.EOF { //nolint:errorlint // NextPart documents the unwrapped error
			return nil
		}
		if err != nil {
			return fmt.Errorf("delete blobs: the answer is not understood: %w", err)
		}
		// The line break that ends the header of a response is part of the boundary.
		one, err := http.ReadResponse(bufio.NewReader(io.MultiReader(part, strings.NewReader("\r\n\r\n"))), nil)
		if err != nil {
			return fmt.Errorf("delete blobs: the answer is not understood: %w", err)
		}
		_ = one.Body.Close()
		if one.StatusCode < 300 {
			continue
		}
		if err := explainAnswer("delete blobs", one); !errdefs.IsNotFound(err) {
			return err
		}
	}
}
